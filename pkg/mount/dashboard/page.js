"use strict";
// The page keeps all rows as data and only those near the viewport as elements.
(() => {
  const by = (id) => document.getElementById(id);
  const list = by("list"), search = by("search"), sort = by("sort");
  const words = { fresh: "fresh", ok: "aging", warn: "near expiry", expired: "expired", unknown: "unknown" };
  const segmentHeight = 24, segmentsPadding = 11, gap = 6, most = 400;
  const narrow = matchMedia("(max-width: 640px)");
  const rows = new Map(); // identity -> row
  const open = new Set(); // identities that are expanded
  let shown = [], tops = [0], active = "", scheduled = 0;

  const number = (n) => n.toLocaleString("en");
  const label = (r) => (r.start === r.end ? "L" + r.start : "L" + r.start + "-" + r.end);
  const element = (name, className, text) => {
    const e = document.createElement(name);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  };

  function heightOf(row) {
    const top = (narrow.matches ? 92 : 56) + 2;
    if (!open.has(row.identity)) return top;
    const lines = Math.min(row.segments.length, most) + (row.segments.length > most ? 1 : 0) + (row.segments.length ? 0 : 1);
    return top + segmentsPadding + lines * segmentHeight;
  }

  // order chooses and sorts the rows and computes where each begins.
  function order() {
    const wanted = search.value.trim().toLowerCase();
    shown = [...rows.values()].filter((r) => r.key.toLowerCase().includes(wanted));
    const path = (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0);
    const net = (r) => r.savedTokens - r.overheadTokens;
    shown.sort(sort.value === "path" ? path : (a, b) => net(b) - net(a) || (a.lastAnswer < b.lastAnswer ? -1 : a.lastAnswer > b.lastAnswer ? 1 : 0) || path(a, b));
    place();
    by("count").textContent = shown.length === rows.size ? number(rows.size) : number(shown.length) + " of " + number(rows.size);
    const empty = by("empty");
    empty.hidden = shown.length > 0;
    empty.textContent = rows.size ? "No path matches." : "Nothing is mounted yet. Files appear here when the session reads them.";
  }

  function place() {
    tops = [0];
    for (const row of shown) tops.push(tops[tops.length - 1] + heightOf(row) + gap);
    list.style.height = tops[tops.length - 1] + "px";
  }

  // firstAt finds the row at a height by bisection.
  function firstAt(y) {
    let low = 0, high = shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1] <= y) low = middle + 1; else high = middle;
    }
    return low;
  }

  // draw keeps elements for the rows near the viewport, and reuses those whose
  // row did not change.
  function draw() {
    scheduled = 0;
    const above = window.scrollY - list.offsetTop - 400, below = above + window.innerHeight + 800;
    const keep = new Map();
    let before = null;
    for (const e of list.children) keep.set(e.dataset.id, e);
    for (let i = firstAt(Math.max(0, above)); i < shown.length && tops[i] < below; i++) {
      const row = shown[i];
      let e = keep.get(row.identity);
      keep.delete(row.identity);
      if (!e || e.row !== row || e.expanded !== open.has(row.identity)) {
        const fresh = build(row);
        if (e) replace(e, fresh);
        e = fresh;
      }
      put(e, before);
      before = e;
      e.style.top = tops[i] + "px";
      e.style.height = tops[i + 1] - tops[i] - gap + "px";
      e.setAttribute("aria-posinset", i + 1);
      e.setAttribute("aria-setsize", shown.length);
      e.firstChild.tabIndex = row.identity === active || (!active && i === 0) ? 0 : -1;
    }
    for (const e of keep.values()) if (!e.contains(document.activeElement) || !rows.has(e.dataset.id)) e.remove();
  }

  function replace(e, fresh) {
    const focused = e.contains(document.activeElement);
    e.replaceWith(fresh);
    if (focused) fresh.firstChild.focus({ preventScroll: true });
  }

  // put keeps the elements in the order in which they are seen and read out.
  function put(e, before) {
    if (e.parentNode === list && e.previousElementSibling === before) return;
    const focused = e.contains(document.activeElement);
    if (before) before.after(e); else list.prepend(e);
    if (focused) e.firstChild.focus({ preventScroll: true });
  }

  function schedule() {
    if (!scheduled) scheduled = requestAnimationFrame(draw);
  }

  function refresh() {
    order();
    schedule();
  }

  // build makes the element of a row.
  function build(row) {
    const e = element("div", "row"), top = element("button", "top");
    e.setAttribute("role", "listitem");
    e.dataset.id = row.identity;
    e.row = row;
    e.expanded = open.has(row.identity);
    top.type = "button";
    top.setAttribute("aria-expanded", String(e.expanded));
    top.title = row.key;
    top.append(dot(row), nameCell(row), mapCell(row), rangesCell(row), netCell(row));
    e.append(top);
    if (e.expanded) e.append(segments(row));
    return e;
  }

  function dot(row) {
    const d = element("span", "dot " + row.worst);
    d.setAttribute("role", "img");
    d.setAttribute("aria-label", words[row.worst]);
    return d;
  }

  function nameCell(row) {
    const cell = element("span", "cell"), at = row.path.lastIndexOf("/");
    const name = element("span", "name", row.path.slice(at + 1));
    if (row.changed) name.append(element("span", "mark", "changed"));
    cell.append(name, element("span", "folder", at > 0 ? row.path.slice(0, at) : at === 0 ? "/" : "."));
    return cell;
  }

  function mapCell(row) {
    const cell = element("span", "cell map-cell"), map = element("span", "map");
    for (const s of row.segments) {
      const part = element("i", s.level);
      part.style.left = Math.min(99.4, (100 * (s.start - 1)) / row.totalLines) + "%";
      part.style.width = (100 * (s.end - s.start + 1)) / row.totalLines + "%";
      map.append(part);
    }
    cell.append(map, element("span", "small", "mounted " + row.mountedLines + "/" + row.totalLines + " · " + row.coveragePercent + " %"));
    return cell;
  }

  function rangesCell(row) {
    const cell = element("span", "cell ranges-cell");
    const some = row.ranges.slice(0, 4).map(label).join(", ") + (row.ranges.length > 4 ? ", …" : "");
    cell.append(element("span", "small", some || "none"), element("span", "small", row.lastKind + " · " + row.hash.slice(0, 8)));
    return cell;
  }

  function netCell(row) {
    const cell = element("span", "cell net-cell");
    cell.append(element("span", "name", number(row.netTokens)), element("span", "small", "tokens"));
    return cell;
  }

  // segments makes the lines below an expanded row.
  function segments(row) {
    const ul = element("ul", "segments");
    for (const s of row.segments.slice(0, most)) ul.append(segment(s));
    const rest = row.segments.length - most;
    if (rest > 0) ul.append(element("li", "more", "and " + number(rest) + " more"));
    if (!row.segments.length) ul.append(element("li", "more", "no lines are mounted"));
    return ul;
  }

  function segment(s) {
    const li = element("li"), meter = element("span", "meter"), fill = element("i", s.level);
    fill.style.width = 100 * (s.score === null ? 1 : Math.max(0.04, s.score)) + "%";
    meter.append(fill);
    const note = element("span", "note");
    if (s.expired > 0) note.append(element("span", "count", "expired ×" + s.expired + " "));
    const extra = ["seq " + s.seq];
    if (s.pinned) extra.unshift("pinned");
    if (s.tokens !== null) extra.push(number(s.tokens) + " tokens");
    note.append(element("span", "extra", extra.join(" · ")));
    li.append(meter, element("span", "", label(s)), element("span", "", words[s.level]), note);
    return li;
  }

  function toggle(id) {
    if (open.has(id)) open.delete(id); else open.add(id);
    place();
    schedule();
  }

  // go makes the row at an index the active one and brings it into view.
  function go(index) {
    if (!shown.length) return;
    index = Math.max(0, Math.min(shown.length - 1, index));
    active = shown[index].identity;
    const header = document.querySelector("header").offsetHeight;
    const top = list.offsetTop + tops[index] - header - gap, bottom = list.offsetTop + tops[index + 1];
    if (top < window.scrollY) window.scrollTo(0, top);
    else if (bottom > window.scrollY + window.innerHeight) window.scrollTo(0, bottom - window.innerHeight);
    cancelAnimationFrame(scheduled);
    draw();
    const e = [...list.children].find((c) => c.dataset.id === active);
    if (e) e.firstChild.focus({ preventScroll: true });
  }

  list.addEventListener("click", (event) => {
    const e = event.target.closest(".top");
    if (!e) return;
    active = e.parentNode.dataset.id;
    toggle(active);
  });
  list.addEventListener("keydown", (event) => {
    const at = shown.findIndex((r) => r.identity === active || r.identity === event.target.parentNode.dataset.id);
    const page = Math.max(1, Math.floor(window.innerHeight / 70) - 2);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go(to);
    } else if (event.key === "ArrowRight" && !open.has(active) || event.key === "ArrowLeft" && open.has(active)) {
      event.preventDefault();
      toggle(active);
    }
  });
  list.addEventListener("focusin", (event) => { active = event.target.closest(".row").dataset.id; });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape" && document.activeElement === search) {
      search.value = "";
      refresh();
    } else if (event.key === "ArrowDown" && document.activeElement === search) {
      event.preventDefault();
      go(0);
    }
  });
  search.addEventListener("input", () => { window.scrollTo(0, 0); refresh(); });
  sort.addEventListener("change", () => { window.scrollTo(0, 0); refresh(); });
  by("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("scroll", schedule, { passive: true });
  addEventListener("resize", () => { place(); schedule(); });

  function showHead(h) {
    by("problem").hidden = !h.problem;
    by("problem").textContent = h.problem;
    by("session").textContent = h.session;
    if (h.problem) return;
    document.title = "afield mount · " + h.session;
    by("net").textContent = number(h.totals.netTokens);
    by("cny").textContent = h.totals.cny.toFixed(2);
    by("saved").textContent = number(h.totals.savedTokens);
    by("overhead").textContent = number(h.totals.overheadTokens);
    by("context").textContent = (h.contextUsed === null ? "unknown" : number(h.contextUsed)) + " of " + number(h.contextWindow);
    by("context").title = "lines expire below a freshness of " + h.threshold;
  }

  const live = (state, text) => {
    by("live").className = "live " + state;
    by("live").textContent = text;
  };
  const source = new EventSource("events");
  source.onopen = () => live("on", "live");
  source.onerror = () => live("off", "reconnecting");
  source.onmessage = (event) => {
    const u = JSON.parse(event.data);
    if (u.reset) rows.clear();
    for (const row of u.rows) rows.set(row.identity, row);
    for (const id of u.gone) {
      rows.delete(id);
      open.delete(id);
    }
    showHead(u.head);
    if (!u.more) refresh();
  };
  refresh();
})();
