// A click on a heading sorts its table: numbers by value, the rest as text.
function sortable(table) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    head.tabIndex = 0;
    const sort = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const shown = (row) => row.cells[place].textContent.trim();
      const value = (row) => Number(row.cells[place].querySelector("[data-value]")?.dataset.value);
      const compare = (a, b) =>
        value(a) - value(b) || shown(a).localeCompare(shown(b), "en", { numeric: true });
      [...body.rows].sort((a, b) => (up ? compare(a, b) : compare(b, a))).forEach((row) => body.append(row));
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
}
document.querySelectorAll("article table").forEach(sortable);
