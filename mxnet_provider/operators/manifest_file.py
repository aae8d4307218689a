"""Templates of an operator that takes a manifest: which of its strings names a file, and which stay text."""

import contextlib
import copy
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.common.compat.sdk import BaseOperator

from mxnet_operator.api.manifest_text import ManifestError, decoded
from mxnet_provider.exceptions import MXNetManifestError

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

_TEXTS: Final = frozenset(
    {
        "command",
        "args",
        "env",
        "labels",
        "annotations",
        "node_selector",
        "nodeSelector",
        "pod_labels",
        "pod_annotations",
    }
)
"""Fields of an operator, a role or a manifest within which Kubernetes takes text only."""


class ReadsManifestFile(BaseOperator):
    """An operator whose `manifest` may name a file of `template_ext`, and none of whose other fields does.

    Airflow takes any string that ends in `.yaml` for a file, so that `args=["--config", "conf.yaml"]` would not work.
    With `render_template_as_native_obj` it makes a number of "20", so that `args=["--epochs", "20"]` would not either.
    """

    manifest: Any

    def render_template(
        self,
        content: Any,
        context: "Context",
        jinja_env: "jinja2.Environment | None" = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """Render as every operator does, but only `manifest` itself can name a file, and arguments stay text."""
        is_text = any(content is getattr(self, field, None) for field in _TEXTS if not isinstance(content, str))
        env = jinja_env or self.get_template_env()
        return self._rendered(content, context, env, set() if seen_oids is None else seen_oids, is_text=is_text)

    def _rendered(
        self, content: Any, context: "Context", env: "jinja2.Environment", seen: set[int], *, is_text: bool
    ) -> Any:
        if id(content) in seen:  # mapped values, which no DAG's author wrote
            return content
        match content:
            case str() if content is self.manifest:
                return self._rendered_manifest(content, context, env, seen)
            case str() if not _has_marks(content, env):
                return content
            case str():
                template = env.from_string(content)
                return _as_text(template, context) if is_text else self._render(template, context)
            case list():
                return [self._rendered(each, context, env, seen, is_text=is_text) for each in content]
            case dict():
                return {
                    key: self._rendered(each, context, env, seen, is_text=is_text or key in _TEXTS)
                    for key, each in content.items()
                }
        return super().render_template(content, context, env, seen)

    def _rendered_manifest(self, content: str, context: "Context", env: "jinja2.Environment", seen: set[int]) -> Any:
        """Render the manifest, after reading its file where nothing has read it before, as for a mapped task."""
        from jinja2 import TemplateNotFound  # noqa: PLC0415 - not where a DAG is parsed

        try:
            return super().render_template(_of_absolute(content, self.template_ext), context, env, seen)
        except (TemplateNotFound, OSError) as e:
            if not _is_file_name(content, self.template_ext):
                raise
            places = [] if Path(content).is_absolute() else getattr(env.loader, "searchpath", [])
            looked = f" in {', '.join(map(str, places))}" if places else ""
            raise MXNetManifestError(
                f"manifest: there is no file {content!r}{looked}: name it relative to the DAG's folder or to "
                "template_searchpath, or give its absolute path, such as Path(__file__).parent / 'job.yaml'"
            ) from e

    def resolve_template_files(self) -> None:
        """Read the manifest's file, and none that an argument happens to name."""
        with contextlib.suppress(OSError):  # there is none yet, maybe: the task fails
            self.manifest = _of_absolute(self.manifest, self.template_ext)
        others = {field: getattr(self, field) for field in self.template_fields if field != "manifest"}
        for field in others:
            setattr(self, field, None)
        super().resolve_template_files()
        for field, value in others.items():
            setattr(self, field, value)


def file_name(manifest: Any, endings: Sequence[str]) -> Any:
    """Return a manifest that names a file as the text by which Airflow finds it; any other as it is."""
    if isinstance(manifest, PurePath):
        return str(manifest)
    return manifest.strip() if _is_file_name(manifest, endings) else manifest


def _is_file_name(manifest: Any, endings: Sequence[str]) -> bool:
    return isinstance(manifest, str) and (name := manifest.strip()).endswith(tuple(endings)) and "\n" not in name


def _of_absolute(manifest: Any, endings: Sequence[str]) -> Any:
    """Return the text of the file of an absolute path, which Airflow's loader of templates finds nowhere."""
    if not (_is_file_name(manifest, endings) and (path := Path(manifest)).is_absolute()):
        return manifest
    try:
        return decoded(path.read_bytes()) + "\n"  # else one that ends in a file's name would be taken for that
    except ManifestError as e:
        raise MXNetManifestError(f"manifest: {manifest}: {e}") from e


def _has_marks(text: str, env: "jinja2.Environment") -> bool:
    if env.line_statement_prefix or env.line_comment_prefix:
        return True
    return any(mark in text for mark in (env.variable_start_string, env.block_start_string, env.comment_start_string))


def _as_text(template: "jinja2.Template", context: "Context") -> str:
    """Render as Airflow does, and join what comes as text, whether the environment is a native one or not."""
    known: Any = copy.copy(context)
    known.update((name, value) for name, value in template.globals.items() if name not in known)
    try:
        return "".join(map(str, template.root_render_func(template.new_context(known, shared=True))))
    except Exception:
        template.environment.handle_exception()
