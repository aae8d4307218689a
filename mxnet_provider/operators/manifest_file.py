"""Templates of an operator that takes a manifest: which of its strings names a file."""

from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import BaseOperator

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class ReadsManifestFile(BaseOperator):
    """An operator whose `manifest` may name a file of `template_ext`, and none of whose other fields does.

    Airflow takes any string that ends in `.yaml` for a file, so that `args=["--config", "conf.yaml"]` would not work.
    """

    manifest: Any

    def render_template(
        self,
        content: Any,
        context: "Context",
        jinja_env: "jinja2.Environment | None" = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """As every operator, except that only `manifest` itself can name a file."""
        if isinstance(content, str) and content is not self.manifest:
            template = (jinja_env or self.get_template_env()).from_string(content)
            return self._render(template, context)
        return super().render_template(content, context, jinja_env, seen_oids)

    def resolve_template_files(self) -> None:
        """Read the manifest's file, and none that an argument happens to name."""
        others = {field: getattr(self, field) for field in self.template_fields if field != "manifest"}
        for field in others:
            setattr(self, field, None)
        super().resolve_template_files()
        for field, value in others.items():
            setattr(self, field, value)
