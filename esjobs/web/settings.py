"""Settings of the pages over HTTP."""

from pydantic import BaseModel, ConfigDict


class WebSettings(BaseModel):
    """Pages over HTTP: where they listen, under which names, and whether people are hidden."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = ""
    """Address, as ``127.0.0.1:8080``, on which ``esjobs serve`` shows pages; empty: none."""
    hosts: tuple[str, ...] = ()
    """Names by which readers reach the pages, beside those of this machine."""
    public: bool = False
    """Show no names of people; needed to listen beyond this machine."""
