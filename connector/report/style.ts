/** The page's light and dark colors. Print is always light. */
const colors = `
:root {
  color-scheme: light dark;
  --paper: #fff; --ink: #1d2126; --muted: #5f6670; --line: #e3e6ea; --soft: #f5f6f8; --accent: #3f6fb5;
  --negative: #bf5340; --neutral: #c9ced6; --positive: #2f7a62;
  --on-negative: #fff; --on-neutral: #1d2126; --on-positive: #fff;
  --high: #9e2f2a; --medium: #d98a3d; --low: #ecd9a8; --other: #c9ced6;
  --on-high: #fff; --on-medium: #1d2126; --on-low: #1d2126; --on-other: #1d2126;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #14171b; --ink: #e4e7eb; --muted: #9aa2ad; --line: #2c3138; --soft: #1c2026; --accent: #7aa5e6;
    --negative: #d9745f; --neutral: #4a515b; --positive: #5bb394;
    --on-negative: #14171b; --on-neutral: #e4e7eb; --on-positive: #14171b;
    --high: #e0635b; --medium: #d99a52; --low: #c2b070; --other: #4a515b;
    --on-high: #14171b; --on-medium: #14171b; --on-low: #14171b; --on-other: #e4e7eb;
  }
}
@media print { :root { color-scheme: light } }`

const texts = `
* { box-sizing: border-box }
html { -webkit-text-size-adjust: 100% }
body {
  margin: 0 auto; padding: 2rem 1rem 3rem; max-width: 68rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
  print-color-adjust: exact; -webkit-print-color-adjust: exact;
}
h1 { margin: 0; font-size: 1.6rem; font-weight: 600; line-height: 1.25 }
h2 { margin: 0 0 .25rem; font-size: 1.1rem; font-weight: 600; break-after: avoid }
h3 { margin: 1.25rem 0 .25rem; font-size: .95rem; font-weight: 600; break-after: avoid }
p { margin: 0 0 .75rem; max-width: 44rem }
.quiet, figcaption, caption { color: var(--muted); font-size: .875rem }
section { margin-top: 2.25rem; padding-top: 1.25rem; border-top: 1px solid var(--line) }
.notice { padding: .75rem 1rem; border-left: 4px solid var(--accent); background: var(--soft) }
nav ul {
  display: flex; flex-wrap: wrap; gap: .25rem 1.25rem;
  margin: 1.5rem 0 0; padding: 0; list-style: none; font-size: .875rem;
}
a { color: var(--accent) }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
summary { cursor: pointer; font-size: .875rem; padding: .35rem 0 }
.before { display: block; color: var(--muted); font-size: .8125rem; font-weight: 400 }
.better { color: var(--positive); font-weight: 600 }
.worse, .bad { color: var(--high); font-weight: 600 }
.unseen {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
ul.plain { margin: .25rem 0 0; padding-left: 1.1rem }
.key {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem 1.5rem; margin: 1.75rem 0 0;
}
.key div { display: flex; flex-direction: column }
.key dt { color: var(--muted); font-size: .875rem }
.key dd { margin: 0; font-size: 1.5rem; font-weight: 600; line-height: 1.3 }
.key dd .before { line-height: 1.4 }`

const tables = `
.scroll { position: relative; overflow-x: auto }
.scroll + .scroll { margin-top: 1.25rem }
table { width: 100%; border-collapse: collapse; font-size: .875rem; line-height: 1.4 }
caption { text-align: left; padding-bottom: .5rem }
thead { display: table-header-group }
tr { break-inside: avoid }
th, td { padding: .35rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
thead th { color: var(--muted); font-weight: 500; vertical-align: bottom }
tbody th { font-weight: inherit }
th:first-child, td:first-child { padding-left: 0 }
th:last-child, td:last-child { padding-right: 0 }
td.n, th.n { text-align: right }
td.n, td.t { white-space: nowrap }
td .quiet, th .quiet { font-size: .8125rem }
.id { overflow-wrap: anywhere }
.words td { padding-left: 1rem; padding-top: 0 }
tr:has(+ .words) > * { border-bottom: 0 }`

const charts = `
figure { margin: 0; break-inside: avoid }
figcaption { margin-top: .4rem }
svg { display: block; width: 100%; height: auto; font-family: inherit; overflow: visible }
.wide { display: none }
.pair > * + *, .three > * + * { margin-top: 1.75rem }
.legend {
  display: flex; flex-wrap: wrap; gap: .25rem 1rem;
  margin: .25rem 0 .5rem; padding: 0; list-style: none; font-size: .875rem;
}
.legend i { display: inline-block; width: .7rem; height: .7rem; margin-right: .4rem; border-radius: 2px }
.range { position: relative; min-width: 7rem; height: 1.2rem; margin-right: .4rem }
.range::before { content: ""; position: absolute; left: 0; right: 0; top: 50%; border-top: 1px solid var(--line) }
.range u { position: absolute; top: .15rem; bottom: .15rem; border-left: 1px solid var(--line) }
.range i, .range b { position: absolute; top: 50%; transform: translateY(-50%) }
.range i { height: .4rem; border-radius: .2rem; background: var(--accent); opacity: .35 }
.range b { width: .55rem; height: .55rem; margin-left: -.275rem; border-radius: 50%; background: var(--accent) }
.axis { position: relative; min-width: 7rem; height: 1.25rem; margin-right: .4rem }
.axis span { position: absolute; bottom: 0; transform: translateX(-50%); font-size: .8125rem }`

/** One column on a phone, where table rows are cards; two columns from 1,000 pixels. */
const screens = `
@media screen and (min-width: 1000px) {
  .three { display: grid; grid-template-columns: repeat(3, 1fr); gap: 2rem }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 2.5rem }
  .pair > * + *, .three > * + * { margin-top: 0 }
  .pair > section, .pair > section + section { margin-top: 2.25rem }
}
@media (min-width: 560px) {
  body { padding-left: 2rem; padding-right: 2rem }
  .wide { display: block }
  .narrow { display: none }
}
@media screen and (min-width: 1000px) {
  .three .wide { display: none }
  .three .narrow { display: block }
}
@media screen and (min-width: 560px) and (max-width: 999px) { figure { max-width: 600px } }
@media screen and (max-width: 559px) {
  .key { grid-template-columns: 1fr 1fr }
  table, caption, tbody, tr, tbody th, td { display: block }
  thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
  tbody tr { margin-bottom: .6rem; padding: .5rem .75rem; border: 1px solid var(--line); border-radius: .4rem }
  tbody th, td, th:first-child, td:first-child { padding: .2rem 0; border: 0 }
  tbody th { font-weight: 600 }
  tbody th .quiet { font-weight: 400 }
  td, td.n { display: flex; justify-content: space-between; gap: 1rem; text-align: right; white-space: normal }
  td::before { content: attr(data-title); color: var(--muted); text-align: left; flex: none; max-width: 50% }
  td .before { font-size: .875rem }
  td:empty, .chart { display: none }
  tr:has(+ .words) { margin-bottom: 0; border-bottom: 0; border-radius: .4rem .4rem 0 0 }
  tbody .words { border-top: 0; border-radius: 0 0 .4rem .4rem }
  .words td { display: block; text-align: left }
}`

/** Two or three sheets of A4. All lengths are in print units. */
const print = `
@media print {
  @page { size: A4; margin: 12mm }
  body { padding: 0; max-width: none; font-size: 8.5pt; line-height: 1.35 }
  h1 { font-size: 15pt }
  h2 { margin-bottom: 1mm; font-size: 11pt }
  h3 { margin: 2mm 0 .5mm; font-size: 9pt }
  p { margin-bottom: 1mm; max-width: none; orphans: 3; widows: 3 }
  section > p { break-inside: avoid }
  nav, details, .screen, .pair.screen { display: none }
  section { margin-top: 2.5mm; padding-top: 1.5mm; border-top: .25pt solid var(--line) }
  .notice { padding: 1.5mm 3mm; border-left-width: 1mm }
  .three { display: grid; grid-template-columns: 1fr 1fr 1fr; gap: 4mm; break-inside: avoid }
  .pair { display: grid; grid-template-columns: 1fr 1fr; gap: 6mm; break-inside: avoid }
  .pair > * + *, .three > * + * { margin-top: 0 }
  .pair > section, .pair > section + section { margin-top: 2.5mm }
  figure > div { max-width: 78mm }
  figcaption { margin-top: 1mm }
  .legend { gap: 0 3mm; margin: .5mm 0; font-size: 7.25pt }
  .wide { display: none }
  .narrow { display: block }
  .scroll { overflow: visible }
  .scroll + .scroll { margin-top: 2mm }
  table, .quiet, figcaption, caption { font-size: 7.25pt; line-height: 1.2 }
  caption { padding-bottom: .5mm }
  th, td { padding: .25mm 1.2mm; border-bottom: .25pt solid var(--line) }
  caption, thead, tr:has(+ .words) { break-after: avoid }
  tbody tr:first-child, tbody tr:nth-child(2), tbody tr:last-child { break-before: avoid }
  .before, td .quiet, th .quiet { font-size: 6.5pt; line-height: 1.1 }
  td .quiet, th .quiet { margin-left: 1.2mm }
  td br, th br { display: none }
  .range, .axis { height: 3.2mm; min-width: 14mm; margin-right: 2mm }
  .range i { height: 1.2mm }
  .range b { width: 1.8mm; height: 1.8mm; margin-left: -.9mm }
  .axis span { font-size: 6.75pt }
  .name { min-width: 34mm }
  .pair .name { min-width: 0 }
  .pair .few { display: none }
  .key { grid-template-columns: repeat(5, 1fr); gap: 1.5mm 4mm; margin-top: 2mm; break-inside: avoid }
  .key dt { font-size: 7.5pt }
  .key dd { font-size: 12pt }
}
`

/** The page's style sheet. Each chart is in the page at two widths, and only one is shown. */
export const pageStyle = [colors, texts, tables, charts, screens, print].join('\n')
