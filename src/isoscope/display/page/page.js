// Draws the charts and the table of a page. The data are packed in the file; nothing is fetched.
(async () => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const trouble = (text) => {
    byId("trouble").textContent = text;
    byId("trouble").hidden = false;
  };
  const state = { views: {}, drawn: [], first: null };
  window.isoscope = state;

  const inflate = async (id) => {
    const letters = atob(byId(id).textContent);
    const bytes = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).text();
  };
  const cellsOf = (column) => ("is" in column ? column.is : column.at.map((n) => column.words[n]));

  // --- light and dark ---------------------------------------------------------------------
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let look = prefersDark.matches ? "dark" : "light";
  let chosenByHand = false;
  const setLook = (next) => {
    look = next;
    root.dataset.look = look;
    byId("look").textContent = look === "dark" ? "Light" : "Dark";
    for (const name of state.drawn) draw(name);
  };
  let draw = () => {};
  setLook(look);
  byId("look").addEventListener("click", () => {
    chosenByHand = true;
    setLook(look === "dark" ? "light" : "dark");
  });
  prefersDark.addEventListener("change", (event) => {
    if (!chosenByHand) setLook(event.matches ? "dark" : "light");
  });

  if (typeof DecompressionStream === "undefined") {
    trouble("This browser is too old to unpack the charts and readings of this page.");
    return;
  }
  const page = JSON.parse(await inflate("values"));

  // --- the table --------------------------------------------------------------------------
  const KEYS = ["run", "site", "variant", "group", "step", "measure", "value", "low", "high",
    "n", "d", "warnings"];
  const columns = Object.fromEntries(
    [...KEYS, "isotropic"].map((key) => [key, cellsOf(page.readings[key])]));
  const total = columns.value.length;
  const warnings = [...new Set(columns.warnings.flat())];
  const numberOf = new Map(warnings.map((text, place) => [text, place + 1]));

  const order = (x) => (x > 0 && isFinite(x) ? Math.floor(Math.log10(x)) : 0);
  const exponent = (text) => text.replace(/e([+-])(\d)$/, "e$10$2");
  // As in number.py: as many digits as the interval supports.
  const formatValue = (value, low, high) => {
    const ends = low === null || high === null ? [] : [low, high];
    const numbers = [value, ...ends];
    const top = Math.max(...numbers.map(Math.abs));
    const most = 6 - order(top);
    const half = ends.length ? Math.abs(high - low) / 2 : 0;
    const places = half === 0 ? Math.min(3 - order(top), most) : Math.min(1 - order(half), most);
    const scientific = top >= 1e6 || (top > 0 && top < 1e-4);
    const text = (x) => {
      if (scientific) {
        if (x === 0) return "0";
        return exponent(x.toExponential(Math.max(order(Math.abs(x)) + places, 0)));
      }
      const fixed = x.toFixed(Math.max(places, 0));
      return Number(fixed) === 0 ? fixed.replace("-", "") : fixed;
    };
    return [text(value), ends.length ? `[${text(low)}, ${text(high)}]` : ""];
  };
  const short = (x) => {
    if (x === null) return "";
    if (x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e4)) {
      const [digits, power] = x.toExponential(3).split("e");
      const trimmed = digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
      return exponent(`${trimmed}e${power}`);
    }
    return String(Number(x.toPrecision(4)));
  };
  const count = (n) => n.toLocaleString("en-US");
  const words = (place) => columns.warnings[place].map((text) => numberOf.get(text));

  const heads = [
    ...["run", "site", "variant", "group", "step"]
      .filter((key) => new Set(columns[key]).size > 1 || key === "site")
      .map((key) => ({ key, text: (i) => columns[key][i] ?? "", number: key === "step" })),
    { key: "measure", text: (i) => columns.measure[i] },
    { key: "value", number: true, text: (i) => formatValue(columns.value[i], columns.low[i], columns.high[i])[0] },
    { key: "low", title: "95 % interval", number: true,
      text: (i) => formatValue(columns.value[i], columns.low[i], columns.high[i])[1] },
    { key: "isotropic", number: true, text: (i) => short(columns.isotropic[i]) },
    { key: "n", number: true, text: (i) => count(columns.n[i]) },
    { key: "d", number: true, text: (i) => count(columns.d[i]) },
    { key: "warnings", text: (i) => words(i).join(" ") },
  ].filter((head) => head.key !== "isotropic" || columns.isotropic.some((x) => x !== null));

  const haystack = Array.from({ length: total }, (_, i) =>
    ["run", "site", "variant", "group", "step", "measure"]
      .map((key) => columns[key][i] ?? "").join(" ").toLowerCase());
  const natural = new Intl.Collator("en", { numeric: true }).compare;
  let sorting = null;
  let chosen = Array.from({ length: total }, (_, i) => i);
  let limit = 100;

  const choose = () => {
    const filter = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = Array.from({ length: total }, (_, i) => i)
      .filter((i) => filter.every((word) => haystack[i].includes(word)));
    if (sorting) {
      const cells = columns[sorting.key];
      const sign = sorting.down ? -1 : 1;
      chosen.sort((a, b) => {
        const [x, y] = [cells[a], cells[b]];
        const [none, other] = [x === null || x === "", y === null || y === ""];
        if (none || other) return none - other || a - b; // missing values last
        const way = typeof x === "number" ? x - y : natural(String(x), String(y));
        return sign * way || a - b;
      });
    }
  };
  const cell = (tag, text, number) => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (number) element.className = "number";
    return element;
  };
  const showTable = () => {
    const body = byId("table").tBodies[0];
    body.replaceChildren(...chosen.slice(0, limit).map((i) => {
      const row = document.createElement("tr");
      row.append(...heads.map((head) => cell("td", head.text(i), head.number)));
      return row;
    }));
    byId("count").textContent = `${count(chosen.length)} of ${count(total)} readings`;
    byId("printed").textContent = `${count(Math.min(limit, chosen.length))} of ${count(total)} ` +
      "readings are printed. All readings: isoscope read RUN --csv";
    byId("rest").hidden = chosen.length <= limit;
    byId("rest").textContent = `Show more (${count(Math.max(chosen.length - limit, 0))} left)`;
    const used = new Set(chosen.slice(0, limit).flatMap(words));
    byId("warnings").replaceChildren(...warnings.map((text, place) => {
      const item = cell("li", text);
      item.value = place + 1;
      item.hidden = !used.has(place + 1);
      return item;
    }));
    for (const head of byId("table").tHead.rows[0].cells) {
      const here = sorting && sorting.key === head.dataset.key;
      head.setAttribute("aria-sort", here ? (sorting.down ? "descending" : "ascending") : "none");
      head.querySelector("button").textContent =
        head.dataset.title + (here ? (sorting.down ? " ↓" : " ↑") : "");
    }
  };
  if (byId("table")) { // a page without readings has none
    byId("table").tHead.rows[0].append(...heads.map((head) => {
      const element = cell("th", "", head.number);
      element.scope = "col";
      element.dataset.key = head.key;
      element.dataset.title = head.title ?? head.key;
      const button = document.createElement("button");
      button.type = "button";
      button.addEventListener("click", () => {
        const again = sorting && sorting.key === head.key;
        sorting = { key: head.key, down: again ? !sorting.down : Boolean(head.number) };
        choose();
        showTable();
      });
      element.append(button);
      return element;
    }));
    byId("filter").addEventListener("input", () => { limit = 100; choose(); showTable(); });
    byId("rest").addEventListener("click", () => { limit += 500; showTable(); });
    showTable();
  }

  // --- files to save ----------------------------------------------------------------------
  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  const stem = (page.title.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[.-]+|-+$/g, "") || "report")
    .slice(0, 60);
  const record = (i) => Object.fromEntries(KEYS.map((key) => [key, columns[key][i]]));
  const asJson = () => chosen.map((i) => JSON.stringify(record(i)) + "\n").join("");
  const quoted = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const asCsv = () => [KEYS, ...chosen.map((i) => {
    const each = record(i);
    return KEYS.map((key) => (key === "warnings" ? each[key].join("; ") : each[key]));
  })].map((line) => line.map(quoted).join(",") + "\n").join("");
  const LATEX = { "\\": "\\textbackslash{}", "{": "\\{", "}": "\\}", "[": "{[}", "]": "{]}",
    "$": "\\$", "&": "\\&", "#": "\\#", "_": "\\_", "%": "\\%", "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}", "<": "\\textless{}", ">": "\\textgreater{}",
    "|": "\\textbar{}", '"': "\\textquotedbl{}", "`": "\\textasciigrave{}", "'": "{'}",
    "≥": "$\\geq$", "≤": "$\\leq$", "≈": "$\\approx$", "×": "$\\times$", "±": "$\\pm$",
    "²": "$^2$", "–": "--", "…": "\\ldots{}" };
  const latex = (text) => Array.from(String(text), (letter) => LATEX[letter] ?? letter).join("");
  const latexNumber = (text) => text
    .replace(/(-?[\d.]+)e([+-]\d+)/g, (_, digits, power) => `$${digits}\\times10^{${Number(power)}}$`)
    .replace(/(?<![$\d{])-(\d[\d.]*)/g, "$$-$1$$");
  const asLatex = () => {
    if (!chosen.length) return "% no readings\n";
    const named = ["run", "site", "variant", "group", "step"];
    const varied = named.filter((key) => new Set(chosen.map((i) => columns[key][i] ?? "")).size > 1);
    const caption = named.filter((key) => !varied.includes(key) && (columns[key][chosen[0]] ?? "") !== "")
      .map((key) => `${key} ${columns[key][chosen[0]]}`).join(", ");
    const used = [...new Set(chosen.flatMap((i) => columns.warnings[i]))];
    const cells = [
      ...varied.map((key) => ({ head: key, words: key !== "step", of: (i) => columns[key][i] ?? "" })),
      { head: "measure", words: true, of: (i) => columns.measure[i] },
      { head: "value", of: (i) => formatValue(columns.value[i], columns.low[i], columns.high[i])[0] },
      { head: "95 % interval", of: (i) => formatValue(columns.value[i], columns.low[i], columns.high[i])[1] },
      { head: "isotropic", of: (i) => short(columns.isotropic[i]) },
      { head: "n", of: (i) => count(columns.n[i]) },
      { head: "d", of: (i) => count(columns.d[i]) },
    ].filter((column) => chosen.some((i) => String(column.of(i)) !== ""));
    const lines = chosen.map((i) => {
      const marks = [...new Set(columns.warnings[i])].map((text) => used.indexOf(text) + 1).join(",");
      return cells.map((column) => {
        const text = String(column.of(i));
        const raised = marks && column.head === "measure" ? `\\textsuperscript{${marks}}` : "";
        return (column.words ? latex(text) : latexNumber(text)) + raised;
      }).join(" & ") + " \\\\";
    });
    const notes = used.map((text, place) => `\\textsuperscript{${place + 1}} ${latex(text)}\\par`);
    return [
      ...(caption ? [`% ${caption}`] : []),
      "% needs \\usepackage{booktabs}",
      `\\begin{tabular}{${cells.map((column) => (column.words ? "l" : "r")).join("")}}`,
      "\\toprule",
      cells.map((column) => latex(column.head)).join(" & ") + " \\\\",
      "\\midrule", ...lines, "\\bottomrule", "\\end{tabular}",
      ...(notes.length ? ["", "\\smallskip", "{\\footnotesize", ...notes, "}"] : []),
    ].join("\n") + "\n";
  };
  const kinds = {
    csv: ["csv", asCsv, "text/csv"],
    json: ["jsonl", asJson, "application/x-ndjson"],
    latex: ["tex", asLatex, "application/x-tex"],
  };
  for (const button of document.querySelectorAll("[data-save]")) {
    const [suffix, make, type] = kinds[button.dataset.save];
    button.addEventListener("click", () => save(`${stem}.${suffix}`, make(), type));
  }

  // --- charts -----------------------------------------------------------------------------
  const boxes = [...document.querySelectorAll("[data-chart]")];
  const boxOf = Object.fromEntries(boxes.map((box) => [box.dataset.chart, box]));
  const unpackedColumns = {};
  const filtersOf = (chart, cells) => Object.entries(page.chosen[chart.section])
    .filter(([key]) => key in cells && !(chart.ignores ?? []).includes(key))
    .map(([key, value]) => [key, new Set([value].flat())]);
  const rowsOf = (name) => {
    const chart = page.charts[name];
    const source = chart.same ?? name;
    const cells = unpackedColumns[source] ??= Object.fromEntries(
      Object.entries(page.charts[source].columns).map(([key, column]) => [key, cellsOf(column)]));
    const filters = filtersOf(chart, cells);
    const keys = Object.keys(cells);
    const rows = [];
    for (let i = 0; i < (cells[keys[0]] ?? []).length; i += 1) {
      if (filters.every(([key, values]) => values.has(String(cells[key][i])))) {
        rows.push(Object.fromEntries(keys.map((key) => [key, cells[key][i]])));
      }
    }
    return rows;
  };
  const pending = {};
  const narrow = matchMedia("(max-width: 560px)");
  const looks = () => { // in one row, the names of a legend would not fit on a narrow page
    const config = page.looks[look];
    return narrow.matches ? { ...config, legend: { ...config.legend, columns: 2 } } : config;
  };
  const fitted = (spec, width) => { // charts above and beside each other have no width of their own
    const made = spec.usermeta?.width;
    if (!made) return spec;
    const share = Math.max(width - 100, 200) / made; // beside the axes
    const scaled = (each) => {
      if (each.vconcat) return { ...each, vconcat: each.vconcat.map(scaled) };
      if (!each.hconcat) return { ...each, width: each.width * share };
      const { hconcat, ...rest } = each;
      if (!narrow.matches) return { ...each, hconcat: hconcat.map(scaled) };
      return { ...rest, vconcat: hconcat.map((part) => ({ ...part, width: made * share })) };
    };
    return scaled(spec);
  };
  const drawNow = async (name) => {
    const chart = page.charts[name];
    const base = fitted(
      chart.specs?.[page.chosen[chart.section][chart.by]] ?? chart.spec, boxOf[name].clientWidth);
    const spec = { ...base, datasets: { rows: rowsOf(name) } };
    const title = chart.titles[page.chosen[chart.section].form];
    if (title) spec.title = { ...spec.title, text: title };
    const found = await window.vegaEmbed(boxOf[name], spec, {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true,
      config: looks(), tooltip: { theme: look === "dark" ? "dark" : "light" },
    });
    state.views[name]?.finalize();
    state.views[name] = found.view;
    if (!state.drawn.includes(name)) state.drawn.push(name);
    if (state.first === null) state.first = performance.now();
  };
  draw = (name) => {
    pending[name] = (pending[name] ?? Promise.resolve()).then(() => drawNow(name)).catch((error) => {
      boxOf[name].textContent = `This chart could not be drawn: ${error.message}`;
    });
    return pending[name];
  };
  narrow.addEventListener("change", () => { for (const name of state.drawn) draw(name); });
  const waiting = new Set(boxes.map((box) => box.dataset.chart));
  const begin = (name) => { if (waiting.delete(name)) return draw(name); return pending[name]; };

  try {
    const library = document.createElement("script");
    library.textContent = await inflate("vega");
    document.head.append(library);
  } catch (error) {
    trouble(`The charts could not be unpacked: ${error.message}`);
    return;
  }
  const visible = () => boxes.filter((box) => box.closest("figure").hidden === false)
    .map((box) => box.dataset.chart).filter((name) => waiting.has(name));
  state.idle = (async () => {
    for (let next = visible(); next.length; next = visible()) {
      await begin(next[0]);
      await new Promise((done) => setTimeout(done)); // keeps the page responsive between charts
    }
  })();
  const update = (name) => {
    pending[name] = (pending[name] ?? Promise.resolve()).then(async () => {
      const view = state.views[name];
      if (view) await view.data("rows", rowsOf(name)).resize().runAsync();
    });
    return pending[name];
  };
  const valueOf = (control) => {
    if (control.type === "range") return control.dataset.values.split(",")[Number(control.value)];
    if (control.type !== "checkbox") return control.value;
    const boxes = [...document.getElementsByName(control.name)];
    return boxes.filter((box) => box.checked).map((box) => box.value);
  };
  const columnsOf = (chart) => page.charts[chart.same ?? ""]?.columns ?? chart.columns;
  const change = (control) => {
    const { section, switch: key } = control.dataset;
    const value = valueOf(control);
    if (String(page.chosen[section][key]) === String(value)) return;
    page.chosen[section][key] = value;
    if (control.type === "range") byId(`${control.id}-at`).textContent = Number(value).toLocaleString("en-US");
    for (const name of state.drawn) {
      const chart = page.charts[name];
      if (chart.section !== section) continue;
      // The title names the estimate; another specification needs another view.
      if (key === "form" || chart.by === key) draw(name);
      else if (key in columnsOf(chart) && !(chart.ignores ?? []).includes(key)) update(name);
    }
  };
  for (const control of document.querySelectorAll("[data-switch]")) {
    const kind = control.type === "range" ? "input" : "change";
    control.addEventListener(kind, () => change(control));
  }
  state.settled = async () => { await state.idle; await Promise.all(Object.values(pending)); };
  for (const button of document.querySelectorAll("[data-more]")) {
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") === "false";
      button.setAttribute("aria-expanded", String(open));
      button.dataset.label ??= button.textContent;
      button.textContent = open ? "Show fewer" : button.dataset.label;
      const figures = byId(button.dataset.more).querySelectorAll('figure[data-folded="1"]');
      for (const figure of figures) {
        figure.hidden = !open;
        if (open) begin(figure.querySelector("[data-chart]").dataset.chart);
      }
    });
  }
  for (const button of document.querySelectorAll("[data-svg]")) {
    button.addEventListener("click", async () => {
      const name = button.dataset.svg;
      await begin(name);
      save(`${stem}-${name}.svg`, await state.views[name].toSVG(), "image/svg+xml");
    });
  }
})().catch((error) => {
  const place = document.getElementById("trouble");
  place.textContent = `Part of this page could not be displayed: ${error.message}`;
  place.hidden = false;
});
