"use strict";
// Tables sort by a click on a heading; long ones can be filtered. Everything is there without this.
const units = { "µs": 1, ms: 1e3, s: 1e6, min: 6e7, B: 1, KiB: 1024, MiB: 1048576, GiB: 1073741824, k: 1e3, M: 1e6, G: 1e9, T: 1e12 };
const figure = (text) => {
  const found = /(-?[\d.]+)\s*([A-Za-zµ]+)?/.exec(text);
  return found ? parseFloat(found[1]) * (units[found[2]] || 1) : NaN;
};
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  const first = Array.from(body.rows);
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const order = { null: "descending", descending: "ascending", ascending: null }[head.getAttribute("aria-sort")];
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      let rows = first.slice();
      if (order) {
        head.setAttribute("aria-sort", order);
        const sign = order === "descending" ? -1 : 1;
        const text = (row) => row.cells[column].textContent;
        rows.sort(head.classList.contains("n")
          ? (a, b) => {
              const x = figure(text(a)), y = figure(text(b));
              return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : sign * (x - y);
            }
          : (a, b) => sign * text(a).localeCompare(text(b)));
      }
      body.replaceChildren(...rows);
    });
  });
}
for (const label of document.querySelectorAll("label.filter")) {
  const table = label.nextElementSibling.querySelector("table");
  label.hidden = false;
  label.querySelector("input").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
  });
}
