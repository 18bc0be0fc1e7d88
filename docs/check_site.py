"""A hook of MkDocs: the build fails if a page would fetch anything from the network."""
import html.parser
import pathlib
import re

from mkdocs.exceptions import PluginError

# Attributes by which an element loads something as soon as a page is shown.
_LOADS = {'script': 'src', 'img': 'src', 'iframe': 'src', 'source': 'src', 'video': 'src', 'audio': 'src',
          'embed': 'src', 'link': 'href', 'object': 'data', 'use': 'href'}
# Kinds of links that only name an address.
_NAMES_ONLY = {'canonical', 'prev', 'next', 'author', 'license'}
_ELSEWHERE = re.compile(r'(?:https?:)?//')


class _Page(html.parser.HTMLParser):
  """Collects what an element would load from elsewhere."""

  def __init__(self):
    super().__init__()
    self.found = []

  def handle_starttag(self, tag, attrs):
    attributes = dict(attrs)
    address = attributes.get(_LOADS.get(tag, ''), '') or ''
    if tag == 'link' and _NAMES_ONLY & set((attributes.get('rel') or '').split()):
      return
    if _ELSEWHERE.match(address):
      self.found.append(f'<{tag}> {address}')
    # The theme would fetch a library for diagrams where there are any.
    if 'mermaid' in (attributes.get('class') or '').split():
      self.found.append('a diagram of mermaid')


def fetched(folder):
  """What the pages and styles below a folder would fetch: lines of file and address."""
  lines = []
  for path in sorted(pathlib.Path(folder).rglob('*')):
    if path.suffix == '.html':
      page = _Page()
      page.feed(path.read_text('utf-8'))
      lines += [f'{path.name}: {found}' for found in page.found]
    elif path.suffix in ('.css', '.svg'):
      lines += [f'{path.name}: {found}' for found in re.findall(
          r'(?:url\(|@import\s|href=)["\']?((?:https?:)?//[^"\')\s]+)', path.read_text('utf-8'))]
  return lines


def on_post_build(config):
  found = fetched(config['site_dir'])
  if found:
    raise PluginError('pages would fetch from the network:\n' + '\n'.join(found))
