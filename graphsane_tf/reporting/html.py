"""Pieces of a self-contained HTML page: no network, everything inline, all text escaped."""
import base64
import hashlib
import html
from typing import Any, Dict, List, Sequence, Tuple

from graphsane_tf.reporting import outputs

# Letters up to which a table's first column takes no more room than it needs on a narrow screen.
_SLIM = 10
_STYLE = '''
:root { color-scheme: light; --ink: #1b1f24; --soft: #5b6570; --line: #d9dee4; --tint: #f4f6f8;
  --accent: #0b5cad; }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; scroll-behavior: smooth; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: .5rem 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; padding-top: .6rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, li, h1, h2, h3 { overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1rem; padding: 0; list-style: none; }
nav a { color: var(--accent); padding: .3rem 0; display: inline-block; }
.summary { background: var(--tint); border-left: 4px solid var(--accent); padding: .6rem 1rem; }
.summary ul { padding-left: 1.1rem; margin: .4rem 0; }
.note { color: var(--soft); font-size: .88rem; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem;
  font-variant-numeric: tabular-nums; }
th, td { padding: .35rem .6rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
tbody tr:last-child td, tbody tr:last-child th { border-bottom: 0; }
thead th { background: var(--tint); vertical-align: bottom; }
th:first-child, .text { text-align: left; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 14rem; }
th:first-child { position: sticky; left: 0; background: #fff; font-weight: 600; }
@media (max-width: 40rem) {
  th:first-child { min-width: 8.5rem; max-width: 45vw; white-space: normal;
    overflow-wrap: break-word; }
  table.slim th:first-child { min-width: 0; }
}
thead th:first-child { background: var(--tint); z-index: 1; }
tr.best td, tr.best th { background: #eaf4ea; }
th button { all: unset; cursor: pointer; font-weight: 600; white-space: normal; }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort=ascending] button::after { content: " \\25B2"; }
th[aria-sort=descending] button::after { content: " \\25BC"; }
.figures { display: grid; gap: 1rem; margin-top: 1rem; grid-template-columns: repeat(auto-fit,
  minmax(min(100%, 24rem), 1fr)); align-items: start; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .6rem;
  max-width: 34rem; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { font-size: .9rem; color: var(--soft); margin-top: .4rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; background: var(--tint); padding: .6rem; border-radius: 6px;
  font-size: .8rem; }
details { margin: .6rem 0; }
summary { cursor: pointer; color: var(--accent); padding: .3rem 0; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, summary { display: none; }
  .scroll { overflow: visible; border: 0; }
  table { font-size: 7.5pt; }
  th, td { padding: .15rem .3rem; white-space: normal; }
  th:first-child { position: static; }
  figure, tr, .summary { break-inside: avoid; }
  .figures { grid-template-columns: 1fr 1fr; }
  h2, h3 { break-after: avoid; }
}
'''

_SCRIPT = '''
document.querySelectorAll('table.sortable').forEach(function (table) {
  var body = table.tBodies[0];
  var first = Array.from(body.rows);
  table.querySelectorAll('thead th').forEach(function (head, column) {
    head.querySelector('button').addEventListener('click', function () {
      var order = {none: 'descending', descending: 'ascending', ascending: 'none'}[
          head.getAttribute('aria-sort') || 'none'];
      table.querySelectorAll('thead th').forEach(function (other) {
        other.setAttribute('aria-sort', 'none');
      });
      head.setAttribute('aria-sort', order);
      var sign = order === 'ascending' ? 1 : -1;
      var rows = first.slice();
      if (order !== 'none') {
        rows.sort(function (a, b) {
          var x = a.cells[column].dataset.value, y = b.cells[column].dataset.value;
          if (x === '' || y === '') { return (x === '') - (y === ''); }
          var number = Number(x) - Number(y);
          return sign * (Number.isNaN(number) ? x.localeCompare(y) : number);
        });
      }
      rows.forEach(function (row) { body.appendChild(row); });
    });
  });
});
'''


def escape(text: Any) -> str:
  """Text that is only text, in an element or an attribute."""
  return html.escape(str(text), quote=True)


def paragraph(text: str, kind: str = '') -> str:
  return f'<p{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(text)}</p>'


def bullets(lines: Sequence[str]) -> str:
  return '<ul>' + ''.join(f'<li>{escape(line)}</li>' for line in lines) + '</ul>'


def table(shown: Dict[str, Any], best: str = '') -> str:
  """A sortable table.

  Args:
    shown: 'heads' and 'cells'; the first column names the rows.
    best: head of the column whose largest value marks its row, or ''.
  """
  heads, cells = shown['heads'], shown['cells']
  top = None
  if best in heads:
    values = [row[heads.index(best)] for row in cells]
    known = [value for value in values if isinstance(value, (int, float))]
    top = values.index(max(known)) if known else None
  slim = ' slim' if all(len(str(row[0])) <= _SLIM for row in cells) else ''
  parts = [f'<div class="scroll" tabindex="0"><table class="sortable{slim}"><thead><tr>']
  kinds = [_kind([row[column] for row in cells]) for column in range(len(heads))]
  for head, kind in zip(heads, kinds):
    parts.append(f'<th scope="col"{kind} aria-sort="none"><button type="button">{escape(head)}'
                 '</button></th>')
  parts.append('</tr></thead><tbody>')
  for k, row in enumerate(cells):
    parts.append('<tr class="best">' if k == top else '<tr>')
    for column, (head, value) in enumerate(zip(heads, row)):
      tag = f'td{kinds[column]}' if column else 'th scope="row"'
      raw = '' if value is None else repr(value) if isinstance(value, float) else value
      shown_text = outputs.text(head, value) or '–'
      parts.append(f'<{tag} data-value="{escape(raw)}">{escape(shown_text)}</{tag.split()[0]}>')
    parts.append('</tr>')
  parts.append('</tbody></table></div>')
  return ''.join(parts)


def _kind(values: Sequence[Any]) -> str:
  """Class attribute of a column: words stand to the left, and long ones are wrapped."""
  words = [value for value in values if isinstance(value, str)]
  if not words:
    return ''
  return ' class="text long"' if max(map(len, words)) > 40 else ' class="text"'


def picture(svg: str, caption: str) -> str:
  """A figure; `svg` is trusted markup (from `figures`), the caption is text."""
  labelled = svg.replace('<svg', f'<svg aria-label="{escape(caption)}"', 1)
  return f'<figure>{labelled}<figcaption>{escape(caption)}</figcaption></figure>'


def pictures(parts: Sequence[str]) -> str:
  return f'<div class="figures">{"".join(parts)}</div>' if parts else ''


def folded(title: str, text: str) -> str:
  """Preformatted text that opens on a click."""
  return f'<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>'


def page(title: str, summary: str, sections: Sequence[Tuple[str, List[str]]]) -> str:
  """The whole document.

  Args:
    title: plain text.
    summary: markup that comes first.
    sections: heading (plain text) and pieces of markup of each.
  """
  digest = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
  policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
  links = ''.join(f'<li><a href="#section-{k}">{escape(name)}</a></li>'
                  for k, (name, _) in enumerate(sections))
  body = ''.join(f'<section><h2 id="section-{k}">{escape(name)}</h2>{"".join(parts)}</section>'
                 for k, (name, parts) in enumerate(sections))
  return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
          f'<meta name="viewport" content="width=device-width, initial-scale=1">'
          f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
          f'<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>'
          f'<h1>{escape(title)}</h1><div class="summary">{summary}</div>'
          f'<nav aria-label="contents"><ul>{links}</ul></nav>{body}</main>'
          f'<script>{_SCRIPT}</script></body></html>\n')
