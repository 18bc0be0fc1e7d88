"""The hook that keeps the documentation from fetching anything (`make docs` builds it)."""
import importlib.util
import pathlib

import pytest

HOOK = pathlib.Path(__file__).resolve().parents[1] / 'docs' / 'check_site.py'
QUIET = ('<a href="https://example.org">a link</a>', '<img src="pictures/flow.svg">',
         '<script src="../js/x.js"></script>',
         '<link rel="canonical" href="https://example.org/page">', '<script>var a = "https://example.org"</script>')
LOUD = ('<script src="https://example.org/x.js"></script>', '<img src="//example.org/x.png">',
        '<link rel="stylesheet" href="http://example.org/x.css">', '<iframe src="https://example.org"></iframe>',
        '<pre class="mermaid">graph</pre>')


def test_what_a_page_would_fetch_is_found(tmp_path):
  pytest.importorskip('mkdocs', reason='the documentation is built with the extra docs')
  spec = importlib.util.spec_from_file_location('check_site', HOOK)
  check_site = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(check_site)
  (tmp_path / 'quiet.html').write_text('\n'.join(QUIET))
  (tmp_path / 'style.css').write_text('p { background: url(data:image/png;base64,AA) }')
  assert check_site.fetched(tmp_path) == []
  for line in LOUD:
    (tmp_path / 'loud.html').write_text(line)
    assert len(check_site.fetched(tmp_path)) == 1, line
  (tmp_path / 'loud.html').unlink()
  (tmp_path / 'style.css').write_text('@import "https://example.org/font.css"; p { src: url(//example.org/a.woff) }')
  assert len(check_site.fetched(tmp_path)) == 2
  with pytest.raises(check_site.PluginError, match='style.css: https://example.org/font.css'):
    check_site.on_post_build({'site_dir': tmp_path})
