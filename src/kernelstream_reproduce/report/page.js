// Draws the charts from the data in the page, and adds the theme switch and downloads. Without it, everything can be read.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg"; // a name, not an address that is loaded
  const COLOURS = 8;
  const MARKERS = [ // one per colour, about 8 wide around 0,0: for readers who do not see the colours
    "M4 0A4 4 0 1 1-4 0A4 4 0 1 1 4 0Z", "M-3.5-3.5H3.5V3.5H-3.5Z", "M0-4.6L4.4 3.4H-4.4Z", "M0-5L4.6 0L0 5L-4.6 0Z",
    "M0 4.6L4.4-3.4H-4.4Z", "M-1.5-4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5Z",
    "M0-2L2.6-4.6L4.6-2.6L2 0L4.6 2.6L2.6 4.6L0 2L-2.6 4.6L-4.6 2.6L-2 0L-4.6-2.6L-2.6-4.6Z",
    "M-2-4.2H2L4.4 0L2 4.2H-2L-4.4 0Z",
  ];
  const summary = JSON.parse(document.getElementById("summary").textContent);

  // ---- small things ----
  function html(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function draw(parent, tag, attributes = {}, text = "") {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text) element.textContent = text;
    parent?.append(element);
    return element;
  }

  function button(text, pressed, act) {
    const element = html("button", { type: "button" }, text);
    if (pressed !== null) element.setAttribute("aria-pressed", pressed);
    element.addEventListener("click", act);
    return element;
  }

  /** So many digits as fit an axis or a tooltip. */
  function show(value, digits = 4) {
    const size = Math.abs(value);
    let text;
    if (size >= 1e6 || (size > 0 && size < 1e-4)) text = value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
    else text = size >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(digits)));
    return text.replaceAll("-", "−");
  }

  function download(name, type, text) {
    const link = html("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  function csv(rows) {
    const cell = (value) => (/[",\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
    return rows.map((row) => row.map(cell).join(",") + "\n").join("");
  }

  const fileName = (text) => text.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^[-.]+|[-.]+$/g, "") || "numbers";

  // ---- scales ----
  /** From values between low and high to pixels between a and b. */
  function scale(low, high, a, b, log) {
    const f = log ? Math.log10 : Number;
    const span = f(high) - f(low) || 1;
    const to = (value) => a + ((f(value) - f(low)) / span) * (b - a);
    to.low = low;
    to.high = high;
    to.ticks = log ? logTicks(low, high) : ticks(low, high, Math.max(2, Math.abs(b - a) / (b > a ? 70 : 42))); // b < a: upwards
    return to;
  }

  function ticks(low, high, wanted) {
    const rough = (high - low) / wanted || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
    const marks = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
      marks.push(Number((k * step).toPrecision(12))); // 0.3, not 0.30000000000000004
    }
    return marks;
  }

  function logTicks(low, high) {
    const decades = Math.log10(high / low);
    if (decades < 0.8) return ticks(low, high, 5).filter((value) => value > 0);
    const every = Math.ceil(decades / 7);
    const marks = [];
    for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high) + 1e-9; k++) {
      for (const factor of decades > 2.5 ? [1] : [1, 2, 5]) {
        const value = Number((factor * 10 ** k).toPrecision(12));
        if (k % every === 0 && value >= low * 0.999 && value <= high * 1.001) marks.push(value);
      }
    }
    return marks;
  }

  /** The bounds of an axis: a little beyond the values; from 0 where bars stand on it. */
  function bounds(values, log, pad, fromZero) {
    let low = Math.min(...values), high = Math.max(...values);
    if (!values.length) return log ? [1, 10] : [0, 1];
    if (log) {
      const factor = pad ? Math.max((high / low) ** pad, 1.02) : 1;
      return low === high && !pad ? [low / 2, high * 2] : [low / factor, high * factor];
    }
    if (fromZero) { low = Math.min(0, low); high = Math.max(0, high); }
    if (low === high) return fromZero ? [0, 1] : [low - 0.5, high + 0.5];
    const room = (high - low) * pad;
    return [fromZero && low === 0 ? 0 : low - room, fromZero && high === 0 ? 0 : high + room];
  }

  // ---- a chart ----
  function start(figure) {
    const [p, s, c] = figure.dataset.chart.split(".").map(Number);
    const chart = summary.papers[p].sections[s].charts[c];
    const slots = figure.dataset.slots.split(",").map(Number);
    const series = chart.series.map((given, index) => ({
      index, name: given.name, slot: slots[index], shown: true,
      points: given.x.map((x, k) => ({ x, y: given.y[k], spread: given.spread?.[k] ?? 0, name: given.names?.[k] ?? "" }))
        .filter((point) => point.x !== null && point.y !== null),
    }));
    const log = { x: chart.log_x, y: chart.log_y };
    const bars = chart.kind === "bar";
    let at = null; // what the cursor is on: an x, a category or a point
    let view; // of the last drawing: scales and size

    const shown = () => series.filter((one) => one.shown);
    const style = (one) => `--c: var(--s${one.slot % COLOURS})`;
    // A colour comes again with another marker: in a scatter there is no dash to tell them apart.
    const marker = (one) => MARKERS[(one.slot + 3 * Math.floor(one.slot / COLOURS)) % COLOURS];
    const dashed = (one) => (one.slot >= COLOURS ? " second" : "");
    const positive = (axis) => series.every((one) => one.points.every((point) => point[axis] > 0));

    function swatch(one) {
      const picture = draw(null, "svg", { class: "swatch", viewBox: "-13 -7 26 14", "aria-hidden": "true", style: style(one) });
      key(picture, one);
      return picture;
    }

    function key(parent, one) {
      if (chart.kind === "line") draw(parent, "path", { class: "curve" + dashed(one), d: "M-13 0H13" });
      if (bars) draw(parent, "path", { class: "rect", d: "M-9-6H9V6H-9Z" });
      draw(parent, "path", { class: "marker", d: marker(one) });
    }

    // -- controls
    const legend = html("div", { class: "legend", role: "group", "aria-label": `Series of “${chart.title}”` });
    for (const one of series) {
      one.button = button("", true, (event) => (event.altKey || event.shiftKey ? only(one) : toggle(one)));
      one.button.append(swatch(one), one.name);
      one.button.title = "click: hide or show; double click: this one only";
      one.button.addEventListener("dblclick", () => only(one));
      legend.append(one.button);
    }
    const all = button("show all", null, () => { for (const one of series) one.shown = true; changed(); });

    function toggle(one) { one.shown = !one.shown; changed(); }
    function only(one) {
      const alone = one.shown && shown().length === 1;
      for (const other of series) other.shown = alone || other === one;
      changed();
    }
    function changed() {
      for (const one of series) one.button.setAttribute("aria-pressed", one.shown);
      all.disabled = shown().length === series.length;
      at = null;
      redraw();
    }

    const tools = html("div", { class: "tools" });
    for (const axis of bars ? ["y"] : ["x", "y"]) {
      const turn = button(`log ${axis}`, log[axis], () => {
        log[axis] = !log[axis];
        turn.setAttribute("aria-pressed", log[axis]);
        redraw();
      });
      turn.className = "axis-button";
      if (!positive(axis)) {
        log[axis] = false;
        turn.setAttribute("aria-pressed", false);
        turn.disabled = true;
        turn.title = "there are values of zero or below";
      }
      tools.append(turn);
    }
    tools.append(
      all,
      button("save SVG", null, () => download(`${fileName(chart.id)}.svg`, "image/svg+xml", picture())),
      button("save CSV", null, () => download(`${fileName(chart.id)}.csv`, "text/csv", csv([
        ["series", "point", chart.x_label, chart.y_label, "spread"],
        ...chart.series.flatMap((one) => one.x.map((x, k) => [
          one.name, one.names?.[k], bars ? chart.categories[x] : x, one.y[k], one.spread?.[k],
        ])),
      ]))),
    );
    tools.lastChild.title = "the numbers of this chart";

    const plot = html("div", {
      class: "plot", tabindex: "0", role: "group", "aria-label": `${chart.title}: left and right arrow keys read out values`,
    });
    const svg = draw(null, "svg", { role: "img" });
    const tip = html("div", { class: "tip", role: "status" });
    plot.append(svg, tip);
    figure.querySelector(".drawing").replaceChildren(legend, plot, tools);

    // -- drawing
    function redraw() {
      const width = plot.clientWidth;
      if (!width) return;
      const height = Math.round(Math.min(420, Math.max(270, width * 0.5)));
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      draw(svg, "title", {}, chart.title);
      draw(svg, "desc", {}, `${chart.y_label} against ${chart.x_label}. Series: ${shown().map((one) => one.name).join(", ")}. `
        + "The numbers are in the table below.");

      const points = shown().flatMap((one) => one.points);
      const below = (point) => (bars && point.y >= 0 ? point.y : point.y - point.spread); // bars stand on zero
      const ys = points.flatMap((point) => [below(point), point.y + point.spread]).filter((y) => !log.y || y > 0);
      const [lowY, highY] = bounds(ys, log.y, bars ? 0.05 : 0.04, bars);
      const [lowX, highX] = bars ? [-0.5, chart.categories.length - 0.5]
        : bounds(points.map((point) => point.x), log.x, chart.kind === "line" ? 0 : 0.05, false);
      const top = 28;
      let bottom = height - 44;
      let turned = false;
      if (bars) { // labels that do not fit side by side are turned
        const longest = Math.max(...chart.categories.map((name) => name.length)) * 6.8;
        turned = longest > (width - 60) / chart.categories.length;
        if (turned) bottom = height - Math.min(110, 36 + longest * 0.6);
      }
      const y = scale(lowY, highY, bottom, top, log.y);
      const reach = turned ? Math.min(18, chart.categories[0].length) * 5.6 - width / chart.categories.length / 2 : 0;
      const left = Math.max(Math.max(...y.ticks.map((value) => show(value).length), 2) * 7.2 + 12, reach);
      const right = width - 12;
      const x = scale(lowX, highX, left, right, log.x && !bars);
      view = { x, y, left, right, top, bottom };

      for (const value of y.ticks) {
        draw(svg, "path", { class: "grid", d: `M${left} ${y(value)}H${right}` });
        draw(svg, "text", { x: left - 7, y: y(value) + 4, "text-anchor": "end", class: "tick-y" }, show(value));
      }
      if (bars) {
        chart.categories.forEach((name, k) => draw(svg, "text", turned
          ? { x: x(k) + 4, y: bottom + 16, "text-anchor": "end", transform: `rotate(-35 ${x(k) + 4} ${bottom + 16})` }
          : { x: x(k), y: bottom + 18, "text-anchor": "middle" }, turned && name.length > 18 ? name.slice(0, 17) + "…" : name));
      } else {
        let last = -Infinity; // labels that would touch the one before are left out
        for (const value of x.ticks) {
          draw(svg, "path", { class: "grid", d: `M${x(value)} ${top}V${bottom}` });
          const half = show(value).length * 3.6;
          if (x(value) - half < last + 6) continue;
          last = x(value) + half;
          const label = { x: Math.min(x(value), width - half), y: bottom + 18, "text-anchor": "middle", class: "tick-x" };
          draw(svg, "text", label, show(value));
        }
      }
      draw(svg, "path", { class: "axis", d: `M${left} ${bottom}H${right}` });
      draw(svg, "text", { x: 0, y: 14 }, `${chart.y_label}${log.y ? " (log)" : ""}`);
      const named = { x: right, y: height - 6, "text-anchor": "end" };
      draw(svg, "text", named, `${chart.x_label}${log.x && !bars ? " (log)" : ""} →`);

      const clamp = (value) => Math.max(top, Math.min(bottom, value));
      const yOf = (value) => (log.y && value <= 0 ? bottom : clamp(y(value)));
      for (const one of shown()) {
        const group = draw(svg, "g", { style: style(one), "data-series": one.index });
        if (bars) drawBars(group, one, x, yOf);
        else if (chart.kind === "line") drawLine(group, one, x, yOf);
        else {
          for (const point of one.points) {
            whisker(group, x(point.x), point, yOf);
            mark(group, one, x(point.x), point, yOf);
          }
        }
      }
      showCursor();
    }

    function whisker(group, at, point, yOf) {
      if (!point.spread) return;
      const [low, high] = [yOf(point.y - point.spread), yOf(point.y + point.spread)];
      draw(group, "path", { class: "whisker", d: `M${at} ${low}V${high}M${at - 3} ${low}h6M${at - 3} ${high}h6` });
    }

    function mark(group, one, at, point, yOf) {
      const transform = `translate(${at} ${yOf(point.y)}) scale(${chart.kind === "scatter" ? 1.3 : 1})`;
      draw(group, "path", { class: "marker", d: marker(one), transform });
    }

    function drawLine(group, one, x, yOf) {
      const line = (points, y) => points.map((point) => `${x(point.x).toFixed(2)} ${yOf(y(point)).toFixed(2)}`).join("L");
      const { points } = one;
      if (!points.length) return;
      if (points.some((point) => point.spread)) {
        const back = line([...points].reverse(), (point) => point.y - point.spread);
        draw(group, "path", { class: "band", d: `M${line(points, (point) => point.y + point.spread)}L${back}Z` });
      }
      draw(group, "path", { class: "curve" + dashed(one), d: `M${line(points, (point) => point.y)}` });
      const every = points.length > 12 ? Math.ceil(points.length / 6) : 1; // few markers, not above each other
      points.forEach((point, k) => {
        if ((k + one.index * 2) % every === 0) mark(group, one, x(point.x), point, yOf);
      });
    }

    function drawBars(group, one, x, yOf) {
      const visible = shown();
      const room = (x(1) - x(0)) * 0.8;
      const wide = Math.min(56, room / visible.length);
      for (const point of one.points) {
        const from = x(point.x) + (visible.indexOf(one) - visible.length / 2) * wide;
        const [low, high] = [log.y ? view.bottom : yOf(0), yOf(point.y)];
        const [top, tall] = [Math.min(low, high), Math.max(0.5, Math.abs(low - high))];
        draw(group, "rect", { class: "rect", x: from + 1, y: top, width: Math.max(1, wide - 2), height: tall });
        whisker(group, from + wide / 2, point, yOf);
        if (wide > 9) mark(group, one, from + wide / 2, point, yOf);
      }
    }

    // -- the cursor: what can be pointed at, from left to right
    function places() {
      if (chart.kind === "scatter") {
        const points = shown().flatMap((one) => one.points.map((point) => ({ one, point })));
        return points.sort((a, b) => a.point.x - b.point.x || a.point.y - b.point.y);
      }
      return [...new Set(shown().flatMap((one) => one.points.map((point) => point.x)))].sort((a, b) => a - b);
    }

    const far = (place, px, py) => (chart.kind === "scatter"
      ? Math.hypot(view.x(place.point.x) - px, view.y(place.point.y) - py) : Math.abs(view.x(place) - px));

    function move(px, py) {
      let best = null, least = chart.kind === "scatter" ? 48 : Infinity;
      for (const place of places()) if (far(place, px, py) < least) [best, least] = [place, far(place, px, py)];
      at = best;
      showCursor();
    }

    /** Shows the cursor and the tooltip where `at` is. */
    function showCursor() {
      svg.querySelector(".pointer")?.remove();
      tip.replaceChildren();
      if (at === null || !view) return;
      const { x, y, top, bottom, left, right } = view;
      const group = draw(svg, "g", { class: "pointer" });
      const scatter = chart.kind === "scatter";
      const px = x(scatter ? at.point.x : at);
      let rows, title;
      if (scatter) {
        title = at.point.name || at.one.name;
        draw(group, "circle", { class: "ring", cx: px, cy: y(at.point.y), r: 8 });
        rows = [[at.one, at.one.name, ""], [null, chart.x_label, at.point.x], [null, chart.y_label, at.point.y, at.point.spread]];
      } else {
        title = bars ? chart.categories[at] : `${chart.x_label}: ${show(at)}`;
        draw(group, "path", { class: "cursor", d: `M${px} ${top}V${bottom}` });
        rows = shown().flatMap((one) => { // of each series the nearest point, if there is one close by
          const near = one.points.reduce((a, b) => (a && Math.abs(x(a.x) - px) <= Math.abs(x(b.x) - px) ? a : b), null);
          if (!near || Math.abs(x(near.x) - px) > 12) return [];
          return [[one, near.x === at ? one.name : `${one.name} at ${show(near.x)}`, near.y, near.spread]];
        });
        if (!bars) rows.sort((a, b) => b[2] - a[2]); // from top to bottom, as the lines are
      }
      const list = html("ul");
      for (const [one, name, value, spread] of rows) {
        const text = value === "" ? "" : show(value) + (spread ? ` ± ${show(spread, 2)}` : "");
        const number = html("b", { "data-value": value }, text); // the exact value, too
        list.append(html("li", {}, one ? swatch(one) : html("i"), html("span", {}, name), number));
      }
      tip.append(html("strong", {}, title), list);
      const leftHalf = px < (left + right) / 2;
      const beside = plot.clientWidth >= 560;
      plot.classList.toggle("narrow", !beside);
      tip.style.left = beside && leftHalf ? `${px + 14}px` : "";
      tip.style.right = beside && !leftHalf ? `${plot.clientWidth - px + 14}px` : "";
    }

    function leave() { at = null; showCursor(); }
    function pointed(event) {
      const box = plot.getBoundingClientRect();
      move(event.clientX - box.left, event.clientY - box.top);
    }
    plot.addEventListener("pointermove", pointed);
    plot.addEventListener("pointerdown", pointed);
    plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") leave(); });
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const all = places();
      const now = at === null ? -1 : all.findIndex((place) => place === at || (place.point && place.point === at.point));
      const to = { ArrowRight: now + 1, ArrowLeft: now < 0 ? all.length - 1 : now - 1, Home: 0, End: all.length - 1 }[event.key];
      if (event.key === "Escape") leave();
      if (to === undefined || !all.length) return;
      event.preventDefault();
      at = all[Math.max(0, Math.min(all.length - 1, to))];
      showCursor();
    });

    // -- the drawing as a file of its own: colours written out, the legend below
    function picture() {
      at = null;
      showCursor();
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
      let [x, line] = [12, 0];
      const keys = draw(svg, "g");
      for (const one of shown()) {
        const wide = 46 + one.name.length * 6.8;
        if (x > 12 && x + wide > width) [x, line] = [12, line + 1];
        const group = draw(keys, "g", { transform: `translate(${x + 13} ${height + 16 + line * 20})`, style: style(one) });
        key(group, one);
        draw(group, "text", { x: 19, y: 4 }, one.name);
        x += wide;
      }
      const written = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"];
      const copy = svg.cloneNode(true);
      const originals = svg.querySelectorAll("*");
      copy.querySelectorAll("*").forEach((element, k) => {
        const computed = getComputedStyle(originals[k]);
        for (const name of written) element.setAttribute(name, computed.getPropertyValue(name));
        element.removeAttribute("style");
        element.removeAttribute("class");
      });
      keys.remove();
      const full = height + 32 + line * 20;
      const outer = { xmlns: SVG, width, height: full, viewBox: `0 0 ${width} ${full}` };
      for (const [name, value] of Object.entries(outer)) copy.setAttribute(name, value);
      const ground = draw(null, "rect", { width, height: full, fill: getComputedStyle(document.body).backgroundColor });
      copy.insertBefore(ground, copy.children[2]); // behind everything, after title and description
      return new XMLSerializer().serializeToString(copy);
    }

    changed();
    new ResizeObserver(redraw).observe(plot);
  }

  // ---- tables as CSV ----
  function tableTools(box) {
    const [p, s, t] = box.dataset.table.split(".").map(Number);
    const section = summary.papers[p].sections[s];
    const table = section.tables[t];
    const plain = ["errors", "errors_without_warmup", "verdict", "seconds", "paper_seconds", "explanation"];
    const figures = ["paper", "ours", "without_warmup"].flatMap((kind) => ["mean", "std", "n"].map((part) => [kind, part]));
    const save = button("save CSV", null, () => download(`${fileName(section.name)}-${t + 1}.csv`, "text/csv", csv([
      ["learner", "data", "variant", "measure", ...figures.map((names) => names.join("_")), ...plain, "settings"],
      ...table.entries.map((it) => [
        it.label, it.data, JSON.stringify(it.variant), table.measure,
        ...figures.map(([kind, part]) => it[kind]?.[part]), ...plain.map((name) => it[name]), JSON.stringify(it.settings),
      ]),
    ])));
    save.title = "the numbers of this table, and more";
    const scroll = box.querySelector(".scroll");
    const whole = button("whole table", false, () => {
      whole.setAttribute("aria-pressed", scroll.classList.toggle("whole"));
    });
    whole.hidden = scroll.scrollHeight <= scroll.clientHeight;
    scroll.after(html("div", { class: "tools" }, whole, save));
  }

  // ---- light and dark ----
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const remember = (act) => { try { return act(localStorage); } catch { return null; } }; // a file may have no storage
  const kept = remember((storage) => storage.getItem("kernelstream-theme"));
  if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  const showTheme = () => theme.setAttribute("aria-pressed", isDark());
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    remember((storage) => storage.setItem("kernelstream-theme", root.dataset.theme));
    showTheme();
  });
  system.addEventListener("change", showTheme);
  theme.hidden = false;
  showTheme();

  // ---- contents: folded where there is no room; the section in view is marked ----
  const contents = document.querySelector("nav details");
  const desktop = matchMedia("(min-width: 70rem)");
  const fold = () => { contents.open = desktop.matches; };
  desktop.addEventListener("change", fold);
  fold();
  contents.addEventListener("click", (event) => { if (event.target.closest("a") && !desktop.matches) contents.open = false; });
  const links = new Map([...contents.querySelectorAll("a")].map((link) => [link.hash.slice(1), link]));
  const inView = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  }, { rootMargin: "-15% 0px -80% 0px" });
  for (const id of links.keys()) inView.observe(document.getElementById(id));

  document.querySelectorAll("[data-table]").forEach(tableTools);
  document.querySelectorAll("[data-chart]").forEach(start);
})();
