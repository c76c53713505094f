"use strict";
// A page that fails to load would leave the wall blank: what is shown stays, and says since when
(() => {
  const EVERY_MS = 60e3, HOUR_MS = 36e5, DAY_MS = 864e5, began = Date.now();
  let reached = new Date(), lost = "";

  function tell() {
    const ended = document.getElementById("ended"), warnings = [lost];
    if (ended) {
      const hours = Math.max(0, (Date.now() - Date.parse(ended.dateTime)) / HOUR_MS);
      ended.textContent = hours < 48 ? `${Math.round(hours)} h old` : `${Math.round(hours / 24)} days old`;
      if (hours > ended.dataset.old) warnings.push(`No night ended in ${ended.dataset.old} hours.`);
    }
    const warning = document.getElementById("warning");
    warning.textContent = warnings.filter(Boolean).join(" ");
    warning.hidden = !warning.textContent;
    if (warning.textContent) warning.parentElement.classList.add("alarm");
  }

  async function renew() {
    try {
      const answer = await fetch(location.href, {cache: "no-cache"});
      if (!answer.ok) throw new Error(answer.status);
      // scripts and styles of a new version come with a whole reload
      if (Date.now() - began > DAY_MS) return location.reload();
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("wall").replaceChildren(...page.getElementById("wall").childNodes);
      reached = new Date();
      lost = "";
    } catch {
      lost = `Not reached since ${reached.toISOString().slice(11, 16)} UTC.`;
    }
    tell();
  }

  tell();
  setInterval(renew, EVERY_MS);
})();
