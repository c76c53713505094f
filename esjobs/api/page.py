"""Pages of a session: one subject, as an object, as text and as a file."""

from collections.abc import Callable
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Generic, TypeVar

from esjobs.core.window import Window
from esjobs.store.base import JobStore
from esjobs.store.files.destination import writing, writing_text

Content = TypeVar("Content")


class Page(Generic[Content]):
    """A page about one subject. Attributes of its content are attributes of the page.

    ``content``: the rows and facts behind it. ``str()`` gives the page as a terminal shows it.
    """

    def __init__(
        self, content: Content, html: Callable[[], str], text: Callable[[], str] | None = None
    ) -> None:
        self.content = content
        self._html = html
        self._text = text

    @property
    def html(self) -> str:
        """The page as one HTML file that needs no network."""
        return self._html()

    def save(self, out: str | Path) -> Path:
        """Write the page into a file: HTML, or PDF if it is named so, which a browser prints.

        Raises :class:`InputError` when it cannot be written.
        """
        html = self.html
        if Path(out).suffix.lower() == ".pdf":
            from esjobs.render.printing import printed

            pdf = printed(html)
            with writing(out) as file:
                file.write(pdf)
            return Path(out)
        with writing_text(out) as stream:
            stream.write(html)
        return Path(out)

    def __getattr__(self, name: str) -> Any:
        # copy and pickle ask for private names before there is any content
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.content, name)

    def __str__(self) -> str:
        return self.html if self._text is None else self._text()

    def __repr__(self) -> str:
        return str(self) if self._text is not None else f"<{type(self).__name__} of {self.content!r:.60}>"

    def _repr_html_(self) -> str:
        if self._text is not None:
            return f"<pre>{escape(self._text())}</pre>"
        # a frame keeps the styles of the page away from those of the notebook
        return f'<iframe srcdoc="{escape(self.html)}" width="100%" height="800"></iframe>'


def usage_page(store: JobStore, window: Window, *, people: bool = True) -> Page[Window]:
    """Return the usage of a window; ``people`` False: without names of users."""
    from esjobs.render.usage_report import usage_html

    return Page(window, partial(usage_html, store, window, people=people))
