"use strict";
// What a plan looks like. All texts come from a recorded run: they become text nodes, and what cannot be seen is written out.

const unseen = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{DI}\u2800\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0]/gu;
const unseenInNames = new RegExp(unseen.source + "|^ | $|(?<= ) ", "gu");
const clip = 300; // characters of a name that are shown at once
const pageSize = 100; // items that are shown at once
const unfolded = 12; // files up to which their diffs are open

// written is a text as nodes. Characters without a shape are their numbers, marked, so that a text that looks the same is another one.
function written(text, keep, what) {
  const out = [];
  let from = 0;
  const s = String(text);
  for (const m of s.matchAll(what || unseen)) {
    if (keep && keep.includes(m[0])) continue;
    out.push(document.createTextNode(s.slice(from, m.index)), el("span", { class: "unseen" }, "\\u" + m[0].codePointAt(0).toString(16).padStart(4, "0")));
    from = m.index + m[0].length;
  }
  out.push(document.createTextNode(s.slice(from)));
  return out.filter((n) => n.textContent !== "");
}

// el makes an element: el("p", {class: "x"}, "text", another).
function el(name, attributes, ...inside) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) e.setAttribute(key, value === true ? "" : value);
  }
  for (const x of inside.flat(3)) {
    if (x === undefined || x === "" || x === null) continue;
    e.append(...(x instanceof Node ? [x] : written(x)));
  }
  return e;
}

// name shows a name, of which the middle is left out until it is asked for.
function name(text) {
  const all = [...String(text)];
  const nodes = (part) => written(part, "", unseenInNames);
  if (all.length <= clip) return el("code", { class: "name" }, nodes(text));
  const e = el("code", { class: "name" }, nodes(all.slice(0, clip - 60).join("")));
  const rest = el("button", { type: "button", class: "more", onclick: (event) => {
    event.preventDefault();
    e.replaceChildren(...nodes(text));
  } }, "… all " + all.length + " characters …");
  e.append(rest, ...nodes(all.slice(-60).join("")));
  return e;
}

const kinds = {
  allowed: "good", approved: "good", committed: "good", denied: "bad", failed: "bad", unreadable: "bad", pending: "warn", stale: "warn", reverted: "soft", started: "warn", "needs approval": "warn",
  add: "good", delete: "bad", modify: "warn", replace: "warn", mode: "warn", link: "warn",
};
const tag = (word) => el("span", { class: "tag " + (kinds[word] || "soft") }, word);
const plural = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many || one + "s");
const list = (kind, texts, most = 8) => el("ul", { class: kind }, folded(texts.map((x) => el("li", {}, x)), most));

// folded shows the first few elements, and a button for the rest.
function folded(elements, most) {
  if (elements.length <= most + 1) return elements;
  const more = el("li", { class: "plain" }, el("button", { type: "button", class: "more", onclick: () => more.replaceWith(...elements.slice(most)) }, plural(elements.length - most, "more", "more")));
  return [...elements.slice(0, most), more];
}

function facts(rows) {
  return el("dl", {}, rows.filter(([, value]) => value !== undefined && value !== "").flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
}

const word = (d) => (!d.allowed ? "denied" : d.requiresApproval ? "needs approval" : "allowed");
const order = ["denied", "needs approval", "allowed"];

// decided says what was decided about an item. The reason that only repeats the rule is left out.
function decided(d) {
  const why = [...(d.reasons || []), ...(d.approvalReasons || [])].filter((r) => r !== "approval_by_rule:" + d.rule && r !== "denied_by_rule:" + d.rule);
  return el("span", { class: "soft" }, [d.rule ? "rule " + d.rule : "", ...why].filter((x) => x).join(", "));
}

const octal = (mode) => mode.toString(8).padStart(4, "0");
function size(n) {
  let unit = 0;
  for (; n >= 10240 && unit < 3; unit++) n = Math.round(n / 1024);
  return n.toLocaleString("en") + " " + ["B", "KiB", "MiB", "GiB"][unit];
}

function state(s) {
  const what = s.target !== undefined ? "symlink to " + s.target : s.link ? "hard link to " + s.link : s.size !== undefined ? size(s.size) : s.kind;
  return what + (s.kind === "symlink" ? "" : " " + octal(s.mode)) + (s.uid === undefined ? "" : " " + s.uid + ":" + s.gid);
}

// became says how a name differs, without what stays.
function became(f) {
  if (!f.before || !f.after) return state(f.before || f.after);
  const a = state(f.before), b = state(f.after);
  return a === b ? a : a + " → " + b;
}

function diff(d) {
  const pre = el("pre", { tabindex: "0", class: "diff", "aria-label": "text diff" });
  for (const line of d.text.replace(/\n$/, "").split("\n")) {
    pre.append(el("span", { class: { "+": "add", "-": "del", "@": "at", "\\": "at" }[line[0]] || "same" }, written(line, "\t")));
  }
  return [pre, d.cut ? el("p", { class: "soft" }, "There is more: the rest is in the archive.") : ""];
}

const json = (value) => el("pre", { tabindex: "0" }, written(JSON.stringify(value, null, 2), "\n\t"));

function file(f, d, open) {
  const head = [tag(f.op), name(f.path), " ", el("span", { class: "soft" }, became(f), " "), el("span", { class: "right" }, decided(d))];
  if (!f.diff || f.diff.text === "") return el("div", { class: "item flat" }, head);
  return unfold(head, open, () => diff(f.diff));
}

// unfold is an item with more, that is made when it is asked for.
function unfold(head, open, more) {
  const e = el("details", { class: "item", open }, el("summary", {}, head));
  const fill = () => { if (e.open && e.children.length === 1) e.append(...[more()].flat().filter((x) => x instanceof Node)); };
  e.addEventListener("toggle", fill);
  fill();
  return e;
}

function undone(r) {
  if (!r.available) return el("p", { class: "bad" }, "It cannot be taken back.");
  return el("p", { class: "soft" }, r.rule ? "Taken back by " + r.method + " " + r.path_template + " (rule " + r.rule + ")." : "It can be taken back.");
}

function intent(x, d, open) {
  const p = x.payload || {}, is = (t) => typeof p[t] === "string";
  const what = x.type === "http.request" && is("url") ? [tag(p.method || "?"), name(p.url)] : x.type === "files.write" && is("path") ? [tag("write"), name(p.path)] : [tag(x.type)];
  return unfold([what, " ", x.rollback.available ? "" : el("span", { class: "bad" }, "cannot be taken back "), el("span", { class: "right" }, decided(d))], open, () => [
    undone(x.rollback), x.before === "unknown" ? el("p", { class: "warn" }, "What it replaces is not known.") : "",
    facts([["amount", x.amount === undefined ? "" : String(x.amount)], ["labels", x.labels.join(", ")], ["idempotency key", x.idempotency_key]]),
    x.type === "files.write" && is("text") ? el("pre", { tabindex: "0" }, written(p.text, "\n\t")) : json(x.payload)]);
}

const exchange = (x, d) => el("div", { class: "item flat" }, tag(x.method || x.scheme), name(x.url), " ",
  el("span", { class: "soft" }, x.decision + (x.status ? " " + x.status : "") + (x.failure ? ", " + x.failure : "") + (x.sent ? ", sent " + size(x.sent) : "")), el("span", { class: "right" }, decided(d)));
const call = (x, d) => el("div", { class: "item flat" }, name(x.tool || "?"), " ", el("span", { class: "soft" }, x.id + (x.decision ? ", " + x.decision : "")), el("span", { class: "right" }, decided(d)));

// section has the items of a class, those first that need a look, and shows a part of many.
function section(id, title, items, decisions, text, show, open) {
  if (items.length === 0) return "";
  const body = el("div", {});
  const groups = order.map((w) => [w, items.map((x, i) => i).filter((i) => word(decisions[i]) === w)]).filter(([, l]) => l.length);
  let wanted = "";
  const redraw = () => body.replaceChildren(...groups.flatMap(([w, all]) => {
    const l = wanted ? all.filter((i) => text(items[i]).toLowerCase().includes(wanted)) : all;
    if (l.length === 0) return [];
    const at = el("div", { class: "items" });
    const more = (from) => {
      at.append(...l.slice(from, from + pageSize).map((i) => show(items[i], decisions[i], open)));
      if (l.length > from + pageSize) {
        const b = el("button", { type: "button", class: "more", onclick: () => { b.remove(); more(from + pageSize); } }, plural(Math.min(pageSize, l.length - from - pageSize), "more", "more") + " of " + l.length.toLocaleString("en"));
        at.append(b);
      }
    };
    more(0);
    const folded = w === "allowed" && l.length > pageSize && groups.length > 1 && !wanted;
    return [el("details", { class: "group", open: !folded }, el("summary", {}, el("h4", { class: kinds[w] }, w, el("span", { class: "soft" }, " " + l.length.toLocaleString("en")))), at)];
  }));
  redraw();
  let timer;
  const find = items.length > 20 ? el("input", { type: "search", placeholder: "find", "aria-label": "find in " + title, oninput: (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => { wanted = event.target.value.toLowerCase(); redraw(); }, 150);
  } }) : "";
  return el("section", { id }, el("h3", {}, title, el("span", { class: "soft" }, " " + items.length.toLocaleString("en")), find), body);
}

// because is a reason with the number of items that have it.
function because(v, reason) {
  const d = v.plan.decision, n = (l) => l.filter((x) => (x.reasons || []).includes(reason)).length;
  const parts = [[n(d.intents), "intent"], [n(d.files), "file"], [n(d.network), "request of the run"], [n(d.calls), "tool call"]].filter(([k]) => k).map(([k, w]) => (w === "request of the run" ? plural(k, w, "requests of the run") : plural(k, w)));
  return el("span", {}, el("strong", {}, name(reason)), parts.length ? ": " + parts.join(", ") : "");
}

// counts says in one line what a commit does.
function counts(v) {
  const p = v.plan, of = (...ops) => p.files.filter((f) => ops.includes(f.op)).length, type = (t) => p.intents.filter((x) => x.type === t);
  const names = [[of("add"), "added"], [of("modify", "replace", "mode", "link"), "changed"], [of("delete"), "deleted"]].filter(([n]) => n).map(([n, w]) => n.toLocaleString("en") + " " + w);
  const parts = [names.length ? names.join(", ") + " in the files of " : "nothing in the files of "];
  const writes = type("files.write").length, requests = type("http.request");
  const final = p.intents.filter((x) => !x.rollback.available).length;
  const past = v.status === "committed" || v.status === "reverted";
  return [el("strong", {}, past ? "What it did: " : "What it does: "), ...parts, el("code", {}, v.to), writes ? "; " + plural(writes, "more file") + " written there" : "", requests.length ? "; " + plural(requests.length, "request") + " to " + hosts(requests) : "", ". ",
    v.status === "reverted" ? "" : final ? el("span", { class: "bad" }, plural(final, "request") + " cannot be taken back.") : el("span", { class: "soft" }, "All of it can be taken back.")];
}

function hosts(requests) {
  const all = [...new Set(requests.map((x) => String((x.payload || {}).url).split("/")[2] || "?"))].map((h) => h.slice(0, 100));
  return all.slice(0, 3).join(", ") + (all.length > 3 ? " and " + plural(all.length - 3, "other host") : "");
}

function draw(v, said) {
  const p = v.plan, e = p.evidence, d = p.decision;
  const ended = e.exit_code !== null ? "exit " + e.exit_code : e.signal !== null ? "killed by signal " + e.signal : "its end was not seen";
  const few = p.files.length <= unfolded;
  document.title = p.run_id + ": " + v.status;
  document.getElementById("plan").replaceChildren(
    ...[answer(v, said), el("p", {}, counts(v)),
      e.complete || !p.accept_partial ? "" : el("div", { class: "box warn" }, el("strong", {}, "The evidence is in doubt, and that was accepted:"), list("", e.doubts)),
      section("intents", "Asked for by the run", p.intents, d.intents, (x) => JSON.stringify(x.payload), intent, p.intents.length <= unfolded),
      section("files", "Files", p.files, d.files, (f) => f.op + " " + f.path, file, few),
      section("network", "Requests that the run made, or was refused", p.network, d.network, (x) => (x.method || x.scheme) + " " + x.url, exchange),
      section("calls", "Tool calls of the run", p.calls, d.calls, (x) => x.id + " " + x.tool, call),
      el("section", { id: "details" }, el("h3", {}, "Details"), facts([["run", p.run_id], ["command", el("code", {}, name(e.command.join(" ")), ", " + ended)], ["evidence", e.complete ? "complete" : "in doubt"],
        ["plan", el("code", {}, v.digest)], ["archive", el("code", {}, p.archive)], ["base", p.base ? el("code", {}, p.base.digest) : "none"],
        ...p.policies.map((x) => ["policy", el("code", {}, x.kind + " " + x.digest + (x.data ? ", data " + x.data : ""))]), ["version", d.policyVersion],
        ...v.keys.map((k) => ["may approve", el("code", {}, (k.name ? k.name + " " : "") + k.key)])]))].filter((x) => x !== ""));
}
