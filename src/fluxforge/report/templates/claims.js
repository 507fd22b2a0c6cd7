"use strict";
const form = document.getElementById("filters");
const rows = [...document.querySelectorAll("#claims-table tbody tr")];
const said = document.getElementById("claims-shown");
function choose() {
  const chosen = new Set([...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
  const place = form.elements.section.value;
  const words = form.elements.words.value.trim().toLowerCase();
  let count = 0;
  for (const row of rows) {
    const kept = chosen.has(row.dataset.verdict) && (!place || row.dataset.section === place) &&
      (!words || row.textContent.toLowerCase().includes(words));
    row.hidden = !kept;
    count += kept;
  }
  said.textContent = `${count} of ${rows.length} claims shown`;
}
form.hidden = false;
form.addEventListener("input", choose);
form.addEventListener("reset", () => setTimeout(choose));
form.addEventListener("submit", (event) => event.preventDefault());
choose();
