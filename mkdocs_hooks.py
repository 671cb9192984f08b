"""Adapt the pages of docs/ to the site: links to source files lead to pages that show them.

On a code host a link such as `../examples/word_count.py` shows the file. On the site it leads to a
page with the file's text, which is made here. `mkdocs.yml` names this module as a hook.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
LINK = re.compile(r"\]\((?P<path>(?!\w+:)[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".py": "python", ".java": "java", ".md": "markdown", ".toml": "toml"}
REMOTE_SCRIPT = re.compile(r"https://unpkg\.com/[^\"'`\\\s]+")
EMPTY_SCRIPT = "data:text/javascript,"


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Add a page for each source file that a page of docs/ links to."""
    for page in list(files.documentation_pages()):
        for found in LINK.finditer(page.content_string):
            path = resolve_outside(page.src_uri, found["path"])
            if path is not None and path.is_file():
                source = f"source/{path.relative_to(ROOT)}.md"
                if source not in files.src_uris:
                    files.append(File.generated(config, source, content=show_source(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to source files to their pages. Links to directories become plain text."""
    uri = page.file.src_uri
    if uri.startswith("source/"):
        return markdown

    def lead(found: re.Match[str]) -> str:
        path = resolve_outside(uri, found["path"])
        if path is None:
            return found.group()
        target = f"source/{path.relative_to(ROOT)}.md"
        return f"]({posixpath.relpath(target, posixpath.dirname(uri) or '.')})"

    return LINK.sub(lead, drop_directory_links(uri, markdown))


def on_post_build(config: Any, **_: Any) -> None:
    """Remove the addresses of scripts that the theme would load from elsewhere.

    The theme loads them for diagrams by Mermaid, which no page has, and for browsers from before
    2020.
    """
    for script in Path(config.site_dir).rglob("*.js"):
        text = script.read_text()
        if REMOTE_SCRIPT.search(text):
            script.write_text(REMOTE_SCRIPT.sub(EMPTY_SCRIPT, text))
    for source_map in Path(config.site_dir).rglob("*.map"):
        source_map.unlink()


def resolve_outside(uri: str, link: str) -> Path | None:
    """Return the path that a link of the page `uri` leads to, if that is outside of docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(uri), link))
    return None if path.startswith(("docs/", "..")) else ROOT / path


def drop_directory_links(uri: str, markdown: str) -> str:
    """Replace links to directories outside of docs/, which have no page, by their text."""

    def drop(found: re.Match[str]) -> str:
        path = resolve_outside(uri, found["path"])
        return found["text"] if path is not None and path.is_dir() else found.group()

    return re.sub(r"\[(?P<text>[^\]]+)\]\((?P<path>(?!\w+:)[^)#\s]+)\)", drop, markdown)


def show_source(path: Path) -> str:
    """Return a page of Markdown that shows a file of the repository."""
    language = LANGUAGES.get(path.suffix, "text")
    return (
        f"---\nsearch: {{exclude: true}}\n---\n# {path.relative_to(ROOT)}\n\n"
        f"````{language}\n{path.read_text()}````\n"
    )
