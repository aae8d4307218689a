// Live changes, ages, filters and logs of the dashboard's pages. One connection a visible page: browsers allow six a host.
"use strict";

const MOST_CHARACTERS = 2000000; // of a log that a page keeps
const base = location.pathname.replace(/\/$/, "");
const byId = (id) => document.getElementById(id);
const tabs = () => [...document.querySelectorAll("[role=tab]")];
let source, ended = false, typing;

function short(seconds) {
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  let rest = Math.max(0, Math.floor(seconds)), first = units.findIndex(([, size]) => rest >= size);
  if (first < 0) first = 3;
  return units.slice(first, first + 2).map(([unit, size], place) => {
    const count = Math.floor(rest / size);
    rest %= size;
    return count || !place ? count + unit : "";
  }).join("");
}

function showAges() {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const text = short((Date.now() - Date.parse(each.dateTime)) / 1000);
    if (each.textContent !== text) each.textContent = text;
    each.title = each.dateTime;
  }
}

function filter() {
  for (const input of document.querySelectorAll("[data-filter]")) {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const each of document.querySelectorAll(input.dataset.filter)) {
      const text = each.textContent.toLowerCase();
      each.hidden = !words.every((word) => text.includes(word));
    }
  }
}

function draw([id, html]) {
  Idiomorph.morph(byId(id), html, {
    ignoreActiveValue: true,
    callbacks: {
      beforeAttributeUpdated: (name, node) => node.role !== "tab" || !["aria-selected", "tabindex"].includes(name),
    },
  });
  if (id === "head") document.title = byId("head").querySelector("h1").textContent.trim();
  filter();
  showAges();
}

function append(text) {
  const log = byId("log");
  log.append(text);
  let length = log.textContent.length;
  while (length > MOST_CHARACTERS && log.childNodes.length > 1) {
    length -= log.firstChild.length;
    log.firstChild.remove();
  }
  if (byId("follow").checked) log.scrollTop = log.scrollHeight;
}

function connect() {
  source?.close();
  if (ended || document.hidden) return;
  const tab = document.querySelector("[role=tab][aria-selected=true]");
  if (byId("log")) byId("log").textContent = "";
  source = new EventSource(base + "/changes" + (tab ? "?log=" + tab.dataset.replica : location.search));
  source.onopen = () => { byId("live").textContent = "live"; if (byId("log")) byId("log").textContent = ""; };
  source.onerror = () => { byId("live").textContent = "connecting …"; };
  source.addEventListener("part", (event) => draw(JSON.parse(event.data)));
  source.addEventListener("log", (event) => append(JSON.parse(event.data)));
  source.addEventListener("end", () => { ended = true; source.close(); byId("live").textContent = "deleted"; });
}

function choose(tab) {
  for (const each of tabs()) {
    each.setAttribute("aria-selected", each === tab);
    each.tabIndex = each === tab ? 0 : -1;
  }
  byId("log").setAttribute("aria-labelledby", tab.id);
  byId("download").href = base + "/logs/" + tab.dataset.replica;
}

document.addEventListener("click", async (event) => {
  const tab = event.target.closest("[role=tab]");
  if (tab) {
    choose(tab);
    connect();
  } else if (event.target.id === "copy") {
    await navigator.clipboard.writeText(byId("log").textContent);
    event.target.textContent = "Copied";
    setTimeout(() => { event.target.textContent = "Copy"; }, 2000);
  } else if (event.target.id === "follow" && event.target.checked) {
    byId("log").scrollTop = byId("log").scrollHeight;
  }
});

document.addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (event.target.role === "tab" && step) {
    const shown = tabs().filter((tab) => !tab.hidden);
    const place = Math.min(Math.max(shown.indexOf(event.target) + step, 0), shown.length - 1);
    event.preventDefault();
    shown[place].focus();
    shown[place].click();
  } else if (event.key === "/" && !event.target.matches("input") && document.querySelector("[type=search]")) {
    event.preventDefault();
    document.querySelector("[type=search]").focus();
  }
});

document.addEventListener("input", ({ target }) => {
  if (target.dataset.filter) filter();
  if (target.id === "filter") {
    history.replaceState(null, "", "?" + new URLSearchParams(new FormData(target.form)));
    clearTimeout(typing);
    typing = setTimeout(connect, 200);
  }
});
document.addEventListener("visibilitychange", connect);
byId("log")?.addEventListener("scroll", ({ target }) => {
  byId("follow").checked = target.scrollTop + target.clientHeight >= target.scrollHeight - 4;
});

if (tabs().length) choose(document.querySelector("[role=tab][aria-selected=true]") ?? tabs()[0]);
setInterval(showAges, 1000);
showAges();
connect();
