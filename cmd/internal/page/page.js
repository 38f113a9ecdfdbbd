
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const text = data.strings;
  document.documentElement.classList.add("scripted");

  // make builds an element. Texts become text nodes, never HTML.
  function make(name, attributes, ...children) {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
      else if (value === true) e.setAttribute(key, "");
      else if (value !== false && value !== null) e.setAttribute(key, value);
    }
    e.append(...children);
    return e;
  }

  const number = new Intl.NumberFormat("en");
  const longest = 200;

  // cell shows a text; of a long one the beginning and the end, until all of it is asked for.
  function cell(s, kind) {
    const td = make("td", { class: kind || null });
    if (s.length <= longest) {
      td.append(s);
      return td;
    }
    const chars = Array.from(s);
    const short = chars.slice(0, 120).join("") + " … " + chars.slice(-60).join("");
    const shown = document.createTextNode(short);
    const button = make("button", { type: "button", class: "all", "aria-expanded": "false", onclick: () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", String(!open));
      shown.data = open ? short : s;
      button.textContent = open ? "all " + number.format(chars.length) + " characters" : "less";
    } }, "all " + number.format(chars.length) + " characters");
    td.append(shown, button);
    return td;
  }

  // hits says for every text whether the searched words are in it: each text is looked at once,
  // however many rows have it.
  function hits(words) {
    return words.map((word) => {
      const found = new Uint8Array(text.length);
      for (let i = 0; i < text.length; i++) if (text[i].toLowerCase().includes(word)) found[i] = 1;
      return found;
    });
  }

  const size = 100;

  // table is a list of rows with search, choices, order and pages.
  //   columns: {title, of: row → text, kind, less: (a, b) → number}
  //   texts:   row → numbers of its texts, for the search
  //   choices: {label, values: [[value, words]], takes: (row, value) → bool}
  function table(place, what, rows, columns, texts, choices) {
    let order = rows, page = 0, sorted = -1, down = false, timer = 0;
    const id = place.id;
    const search = make("input", { type: "search", id: id + "-search", autocomplete: "off", spellcheck: "false", oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(choose, 120);
    } });
    const tools = make("div", { class: "tools", role: "search", "aria-label": "Search in " + what },
      make("label", { class: "grow" }, "Search (all words)", search));
    const selects = choices.map((c) => {
      const select = make("select", { onchange: choose }, make("option", { value: "" }, "all"));
      for (const [value, words] of c.values) select.append(make("option", { value }, words));
      tools.append(make("label", {}, c.label, select));
      return select;
    });
    const clear = make("button", { type: "button", onclick: () => {
      search.value = "";
      for (const s of selects) s.value = "";
      choose();
      search.focus();
    } }, "Clear");
    tools.append(clear);
    const status = make("span", { role: "status", "aria-live": "polite" });
    const go = (label, where) => make("button", { type: "button", onclick: () => { page = where(); draw(); } }, label);
    const last = () => Math.max(0, Math.ceil(order.length / size) - 1);
    const buttons = [go("First", () => 0), go("Previous", () => page - 1), go("Next", () => page + 1), go("Last", last)];
    const pages = make("div", { class: "pages", role: "group", "aria-label": "Pages of " + what }, ...buttons, status);
    const heads = columns.map((c, i) => make("th", { scope: "col", class: c.kind === "number" ? "number" : null },
      c.less ? make("button", { type: "button", title: "Order by " + c.title, onclick: () => sort(i) }, c.title) : c.title));
    const body = make("tbody", {});
    const caption = make("caption", { hidden: true }, what);
    place.append(tools, pages, make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": what },
      make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), body)));

    function choose() {
      clearTimeout(timer);
      const found = hits(search.value.toLowerCase().split(/\s+/).filter((w) => w));
      const asked = choices.map((c, i) => [c, selects[i].value]).filter(([, value]) => value !== "");
      order = rows.filter((row) => asked.every(([c, value]) => c.takes(row, value)) &&
        found.every((f) => texts(row).some((n) => f[n])));
      page = 0;
      arrange();
      draw();
    }

    function arrange() {
      if (sorted < 0) return;
      const less = columns[sorted].less;
      order = order.slice().sort((a, b) => down ? less(b, a) : less(a, b));
    }

    // sort orders by a column: up, then down, then as in the record again.
    function sort(i) {
      if (sorted !== i) { sorted = i; down = false; } else if (!down) down = true; else sorted = -1;
      heads.forEach((h, n) => {
        if (n === sorted) h.setAttribute("aria-sort", down ? "descending" : "ascending");
        else h.removeAttribute("aria-sort");
      });
      choose();
    }

    function draw() {
      page = Math.min(Math.max(page, 0), last());
      const from = page * size, shown = order.slice(from, from + size);
      body.replaceChildren(...shown.map((row) => make("tr", {}, ...columns.map((c) => cell(c.of(row), c.kind)))));
      const of = order.length === rows.length ? number.format(rows.length) : number.format(order.length) + " found, of " + number.format(rows.length);
      status.textContent = shown.length === 0 ? "none found, of " + number.format(rows.length)
        : number.format(from + 1) + " to " + number.format(from + shown.length) + " of " + of;
      buttons[0].disabled = buttons[1].disabled = page === 0;
      buttons[2].disabled = buttons[3].disabled = page >= last();
    }

    draw();
    return {
      // only shows what one choice takes, and goes there.
      only(label, value) {
        search.value = "";
        choices.forEach((c, i) => {
          if (c.label === label && value !== "" && ![...selects[i].options].some((o) => o.value === value)) selects[i].append(make("option", { value }, c.words(value)));
          selects[i].value = c.label === label ? value : "";
        });
        choose();
        place.scrollIntoView();
        search.focus({ preventScroll: true });
      },
      focus() {
        place.scrollIntoView();
        search.focus({ preventScroll: true });
      },
    };
  }

  // Rows of operations: seq, ns, process, program, op, group, name, outcome, result, calls…
  const SEQ = 0, NS = 1, PROCESS = 2, PROGRAM = 3, OP = 4, GROUP = 5, NAME = 6, OUTCOME = 7, RESULT = 8, CALLS = 9;
  const by = (i) => (a, b) => a[i] - b[i];
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const rank = (() => { // of each text, so that an order of rows compares numbers
    let ranks = null;
    return () => {
      if (ranks) return ranks;
      ranks = new Uint32Array(text.length);
      Array.from(text.keys()).sort((a, b) => compare(text[a], text[b]) || a - b).forEach((n, i) => { ranks[n] = i; });
      return ranks;
    };
  })();
  const byText = (i) => (a, b) => rank()[a[i]] - rank()[b[i]];
  const time = (ns) => ns < 0 ? "" : (ns / 1e9).toFixed(6);

  const rows = data.rows;
  const used = (i) => [...new Set(rows.map((r) => r[i]))];
  const columns = [
    { title: "line", kind: "number", of: (r) => String(r[SEQ]), less: by(SEQ) },
    ...(data.timed ? [{ title: "seconds", kind: "number", of: (r) => time(r[NS]), less: by(NS) }] : []),
    { title: "process", kind: "number", of: (r) => String(data.pids[r[PROCESS]]), less: by(PROCESS) },
    { title: "program", of: (r) => text[r[PROGRAM]], less: byText(PROGRAM) },
    { title: "operation", of: (r) => text[r[OP]], less: byText(OP) },
    { title: "name", kind: "name", of: (r) => text[r[NAME]], less: byText(NAME) },
    { title: "result", of: (r) => text[r[RESULT]], less: byText(RESULT) },
  ];
  const calls = [...new Set(rows.flatMap((r) => r.slice(CALLS)))];
  if (calls.length) columns.push({ title: "tool calls", of: (r) => r.slice(CALLS).map((n) => text[n]).join(", ") });
  const choices = [
    { label: "Kind", values: used(GROUP).sort((a, b) => a - b).map((g) => [String(g), data.groups[g]]), takes: (r, v) => r[GROUP] === Number(v) },
    { label: "Outcome", values: used(OUTCOME).map((o) => [String(o), text[o]]), takes: (r, v) => r[OUTCOME] === Number(v) },
    { label: "Process", values: data.pids.slice(0, 500).map((pid, i) => [String(i), String(pid)]), takes: (r, v) => r[PROCESS] === Number(v), words: (v) => String(data.pids[Number(v)]) },
  ];
  if (calls.length) choices.push({ label: "Tool call", values: calls.slice(0, 500).map((n) => [text[n], text[n].slice(0, 80)]), takes: (r, v) => r.slice(CALLS).some((n) => text[n] === v), words: (v) => v.slice(0, 80) });
  const operations = table(document.getElementById("operations-table"), "Operations", rows, columns,
    (r) => [r[NAME], r[PROGRAM], r[OP], r[RESULT], ...r.slice(CALLS)], choices);

  function values(id, what, word, list) {
    const kinds = [...new Set(list.map((r) => r[0]))];
    table(document.getElementById(id), what, list, [
      { title: word, of: (r) => text[r[0]], less: byText(0) },
      { title: "value", kind: "name", of: (r) => text[r[1]], less: byText(1) },
    ], (r) => r, [{ label: word, values: kinds.map((k) => [String(k), text[k]]), takes: (r, v) => r[0] === Number(v) }]);
  }
  values("surface-table", "Capability surface", "set", data.surface.rows);
  if (data.filtered.rows.length) {
    document.getElementById("filtered").hidden = false;
    values("filtered-table", "Left out as noise", "rule", data.filtered.rows);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.process !== undefined) operations.only("Process", button.dataset.process);
    if (button.dataset.call !== undefined) operations.only("Tool call", button.dataset.call);
  });
  const folds = (open) => () => { for (const d of document.querySelectorAll("#tree details")) d.open = open; };
  document.getElementById("unfold").addEventListener("click", folds(true));
  document.getElementById("fold").addEventListener("click", folds(false));

  // "/" goes to the search, unless a text is being typed.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    operations.focus();
  });

  // Folded parts are printed, too, and are folded again afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const d of opened) d.open = true;
  });
  window.addEventListener("afterprint", () => { for (const d of opened) d.open = false; });
})();
