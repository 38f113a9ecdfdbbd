"use strict";
// What is asked of the server, and the answer of the plan with the buttons that belong to it.

const half = "csrf"; // the half of the session that other ports do not get
const $ = (id) => document.getElementById(id);
let current = ""; // the archive that is shown
let watching; // the timer of one that is being changed

class Refusal extends Error {
  constructor(e) {
    super(e.message);
    this.code = e.code;
    this.details = e.details || [];
  }
}

async function ask(method, path, body, type) {
  const headers = { Accept: "application/json", "X-CSRF-Token": localStorage.getItem(half) || "" };
  if (body !== undefined) headers["Content-Type"] = type || "application/json";
  const answer = await fetch(path, { method, headers, body }).catch(() => { throw new Refusal({ code: "no answer", message: "runner-gate does not answer: is it still running?" }); });
  const value = await answer.json();
  if (answer.ok) return value;
  if (value.error.code === "session" || value.error.code === "csrf") closed(value.error);
  throw new Refusal(value.error);
}

function closed(error) {
  localStorage.removeItem(half);
  $("add").hidden = document.querySelector("nav").hidden = true;
  $("plan").replaceChildren(trouble(error, "Closed"));
}

function trouble(e, title) {
  return el("div", { class: "box bad", role: "alert", id: "error" }, el("strong", {}, title, " ", e.code ? tag(e.code) : ""), el("p", {}, e.message), e.details && e.details.length ? list("reasons", e.details, 20) : "");
}

// act runs one action. What went wrong is shown above what is there now.
async function act(f) {
  const buttons = [...document.querySelectorAll("button")];
  for (const b of buttons) b.disabled = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await f();
  } catch (e) {
    await show(current, e).catch(() => {});
  } finally {
    for (const b of buttons) b.disabled = false;
    document.body.removeAttribute("aria-busy");
  }
}

// show shows an archive as it is now, and what went wrong before.
async function show(id, error) {
  clearTimeout(watching);
  if (id) {
    const v = await ask("GET", "/bundles/" + id + "/plan").catch((e) => { if (!error) throw e; });
    if (v) drawNow(v, error);
  }
  if (error && !$("error")) $("plan").prepend(trouble(error, "Not done"));
  await archives();
}

function drawNow(v, error) {
  current = v.id;
  const top = error || v.id !== location.hash.slice(1);
  history.replaceState(null, "", "#" + v.id);
  draw(v, error);
  if (top) window.scrollTo(0, 0);
  if (v.doing) watching = setTimeout(() => show(v.id).catch(() => {}), 1000);
}

async function archives() {
  const all = await ask("GET", "/bundles");
  $("add").hidden = false;
  document.querySelector("nav").hidden = all.length === 0;
  $("count").textContent = all.length;
  $("list").replaceChildren(...all.map((b) => el("li", {}, el("button", { type: "button", "aria-current": String(b.id === current), onclick: () => act(() => show(b.id)) },
    el("span", { class: "run" }, b.run_id || b.id), tag(b.status), el("span", { class: "soft" }, plural(b.files, "file") + ", " + plural(b.intents, "intent"))))));
  if (all.length === 0 && !$("error")) {
    $("plan").replaceChildren(el("div", { class: "empty" }, el("h2", {}, "No archive yet"), el("p", {}, "Add the archive of a run: what it would change is shown here, before it changes anything."),
      el("button", { type: "button", class: "main", onclick: () => $("file").click() }, "Add an archive")));
  }
  return all;
}

const headlines = {
  denied: ["bad", "Denied: nothing of it can be committed"], pending: ["warn", "Allowed, once it is approved"], approved: ["good", "It can be committed"],
  stale: ["warn", "The plan is out of date"], committed: ["good", "Committed"], reverted: ["soft", "Committed, and taken back"],
  failed: ["bad", "The commit failed, and not all of it could be taken back"], started: ["warn", "A commit or a revert was cut off in the middle"],
};

// answer is what a reader has to know first: what is so, why, who is to do what, and the buttons for that.
function answer(v, error) {
  const [kind, title] = v.doing ? ["warn", "A " + v.doing + " is being done"] : error && v.status === "approved" ? ["warn", "Approved, not committed"] : headlines[v.status] || ["soft", v.status];
  const denials = v.approvals.filter((a) => a.verdict === "deny");
  return el("div", { id: "answer", class: "box " + kind, "aria-live": "polite" }, error ? trouble(error, "Not done") : "", el("h2", {}, title),
    v.status === "started" && !v.doing ? el("p", {}, "The directory may be in between. Commit goes on with it, Revert takes all of it back.") : "",
    v.stale && v.status !== "committed" ? el("p", {}, v.stale + ".") : "",
    v.status === "reverted" ? el("p", {}, "A plan is committed once. For the same change again, record the run again.") : "",
    !v.plan.evidence.complete && !v.plan.accept_partial ? el("p", {}, "Who accepts what is in doubt starts runner-gate serve with --accept-partial.") : "",
    v.refused.length && v.status === "denied" ? list("reasons", v.refused.map((r) => because(v, r))) : "",
    v.status === "denied" ? denials.map((a) => el("p", {}, who(v, a.key), " denies it", a.comment ? [": ", el("q", {}, name(a.comment))] : "")) : "",
    ["pending", "approved"].includes(v.status) ? needs(v) : "",
    v.why && v.status !== "committed" ? el("p", {}, "The last commit did not stay: ", name(v.why)) : "",
    v.left.length ? [el("p", {}, "What could not be taken back:"), list("reasons", v.left)] : "",
    v.status === "committed" && v.cannot_undo.length ? [el("p", {}, "A revert leaves this as it is:"), list("reasons", v.cannot_undo)] : "",
    given(v), actions(v));
}

function who(v, key) {
  const k = v.keys.find((x) => x.key === key);
  return k && k.name ? el("span", { title: key }, el("strong", {}, k.name)) : el("code", {}, key);
}

// needs says who has to approve, and who did.
function needs(v) {
  if (v.plan.approvals.length === 0) return el("p", {}, "Nobody has to approve it.");
  const approved = new Set(v.approvals.filter((a) => a.verdict === "approve").map((a) => a.key));
  return el("ul", { class: "needs" }, v.plan.approvals.map((r) => {
    const keys = r.keys.length ? r.keys : v.keys.map((k) => k.key), have = keys.filter((k) => approved.has(k)), open = keys.filter((k) => !approved.has(k));
    const enough = have.length >= r.count;
    return el("li", { class: enough ? "done" : "" }, el("span", { class: enough ? "good" : "warn" }, enough ? "✓ " : "○ "), r.why + ": " + have.length + " of " + r.count + (r.count === 1 ? " approval" : " approvals"),
      enough ? "" : ["; can still approve: ", open.flatMap((k, i) => [i ? ", " : "", who(v, k), k === v.key ? " (you)" : ""])]);
  }));
}

// given are the approvals, and those that do not count.
function given(v) {
  const a = v.approvals.filter((x) => x.verdict === "approve");
  return [a.length ? el("ul", { class: "plain soft" }, a.map((x) => el("li", {}, "approved by ", who(v, x.key), x.actor ? [" (says to be ", name(x.actor), ")"] : "", " until " + x.expires.replace("T", " ").replace("Z", " UTC"), x.comment ? [": ", el("q", {}, name(x.comment))] : ""))) : "",
    v.not_in_force.length ? el("details", { class: "soft" }, el("summary", {}, plural(v.not_in_force.length, "approval does", "approvals do") + " not count"), list("", v.not_in_force)) : ""];
}

function actions(v) {
  const step = (word, body) => () => act(async () => {
    drawNow(await ask("POST", "/bundles/" + v.id + "/" + word, JSON.stringify({ plan: v.digest, ...(body ? body() : {}) })));
    await archives();
  });
  const change = (word) => () => {
    const busy = setTimeout(() => show(v.id).catch(() => {}), 1500); // what takes long is shown
    return step(word)().finally(() => clearTimeout(busy));
  };
  const button = (id, kind, text, onclick, disabled) => el("button", { id, type: "button", class: kind, onclick, disabled }, text);
  const all = [];
  if (v.doing) return el("p", { class: "soft" }, "This page looks again each second.");
  if (v.status === "stale" || v.status === "reverted" && v.stale || v.status === "failed" && v.stale) all.push(button("again", "main", "Plan again", step("plan")));
  if (v.status === "pending" || v.status === "approved") {
    const did = v.approvals.some((a) => a.key === v.key && a.verdict === "approve");
    const ready = v.status === "approved";
    const comment = el("input", { id: "comment", maxlength: "500", placeholder: "comment, signed too", "aria-label": "comment, signed too" });
    const say = (verdict) => step("approve", () => ({ verdict, comment: comment.value }));
    if (ready) all.push(button("commit", "main", "Commit", change("commit")));
    if (v.may_approve && !did && v.plan.approvals.length) all.push(button("approve", ready ? "" : "main", "Approve", say("approve")));
    if (v.may_approve) all.push(button("deny", "danger", "Deny", say("deny")), comment);
    if (!ready) all.push(button("commit", "", "Commit", change("commit"), true));
  }
  if (v.status === "started") all.push(button("commit", "main", "Commit", change("commit")));
  if (v.status === "committed" || v.status === "started") {
    const left = v.cannot_undo.length;
    let sure = left === 0;
    all.push(button("revert", "danger", "Revert", (event) => {
      if (sure) return change("revert")();
      sure = true;
      event.target.textContent = "Revert all but " + plural(left, "request");
    }));
  }
  const files = ["pending", "approved", "denied"].includes(v.status) && v.plan.approvals.length ? el("p", { class: "soft small" }, v.may_approve ? ["Signs with ", who(v, v.key), ". "] : "The key of this server may not approve. ", "Others sign elsewhere: ",
    el("button", { type: "button", class: "link", id: "download", onclick: () => act(() => download(v)) }, "save plan.json"), ", runner-gate approve, then ",
    el("button", { type: "button", class: "link", id: "take", onclick: () => $("signed").click() }, "add their approval"), ".") : "";
  return [all.length ? el("div", { class: "actions" }, all) : "", files];
}

async function download(v) {
  const answer = await fetch("/bundles/" + v.id + "/plan.json", { headers: { "X-CSRF-Token": localStorage.getItem(half) || "" } });
  if (!answer.ok) throw new Refusal((await answer.json()).error);
  const url = URL.createObjectURL(await answer.blob());
  el("a", { href: url, download: "plan.json" }).click();
  URL.revokeObjectURL(url);
}

$("add").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", (event) => act(async () => {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  drawNow(await ask("POST", "/bundles", file, "application/octet-stream"));
  await archives();
}));
$("signed").addEventListener("change", (event) => act(async () => {
  const [file] = event.target.files;
  event.target.value = "";
  if (!file) return;
  const v = await ask("GET", "/bundles/" + current + "/plan");
  drawNow(await ask("POST", "/bundles/" + current + "/approve", JSON.stringify({ plan: v.digest, approvals: await file.text() })));
  await archives();
}));

// begin takes the token of the address for a session, and then it is out of the address.
async function begin() {
  const wide = matchMedia("(min-width: 50rem)");
  const fold = () => { $("archives").open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();
  const at = location.hash.slice(1);
  if (at.startsWith("token=")) {
    history.replaceState(null, "", "/");
    localStorage.setItem(half, (await ask("POST", "/session", JSON.stringify({ token: at.slice(6) }))).csrf);
  }
  const all = await archives();
  const b = all.find((x) => x.id === at) || all[0];
  if (b) await show(b.id);
}
window.addEventListener("hashchange", () => { if (/^[0-9a-f]{64}$/.test(location.hash.slice(1))) act(() => show(location.hash.slice(1))); });
begin().catch((e) => { if (!$("error")) $("plan").replaceChildren(trouble(e, "Closed")); });
