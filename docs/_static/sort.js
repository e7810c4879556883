// Tables of results can be sorted by a click on the head of a column; cells are compared as numbers if they begin with one.
"use strict";

for (const table of document.querySelectorAll("article table.docutils")) {
  const body = table.tBodies[0];
  const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
  if (!body || body.rows.length < 4 || !location.pathname.includes("/results/")) continue;
  table.classList.add("sortable");
  const original = [...body.rows];
  heads.forEach((head, column) => {
    head.tabIndex = 0;
    head.setAttribute("role", "columnheader");
    const sort = () => {
      const before = head.getAttribute("aria-sort");
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      if (before === "descending") return body.append(...original); // the third click: as it was
      const sign = before === "ascending" ? -1 : 1;
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const keys = new Map(original.map((row) => [row, key(row.cells[column]?.textContent.trim() ?? "")]));
      const order = (a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        if (x.empty || y.empty) return x.empty - y.empty; // cells without a value stay last
        if (!isNaN(x.number) && !isNaN(y.number)) return sign * (x.number - y.number);
        return sign * x.text.localeCompare(y.text);
      };
      body.append(...[...original].sort(order));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
}

function key(text) {
  const number = /^[+-]?[\d,]*\.?\d+(e[+-]?\d+)?/i.exec(text);
  return { text, number: number ? parseFloat(number[0].replaceAll(",", "")) : NaN, empty: /^[—-]?$/.test(text) };
}
