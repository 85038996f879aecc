"""A tool described in HTML: what it is for and what it takes."""

from html import escape

from PySide6.QtCore import QCoreApplication

from callboard.api.schema import ToolView
from callboard.ui.models.parameters import Parameter, parameters
from callboard.ui.theme import Theme, Token

_SHOWN = 150  # parameters; the JSON has them all

translate = QCoreApplication.translate


def tool_html(tool: ToolView, theme: Theme) -> str:
    """The whole page; all that comes from the server is escaped."""
    muted = theme.color(Token.MUTED).name()
    parts = []
    if tool.problem:
        fore, back = theme.color(Token.ATTENTION).name(), theme.color(Token.ATTENTION_SOFT).name()
        parts.append(
            f'<table width="100%" cellpadding="8" style="background:{back}"><tr><td style="color:{fore}">'
            f"\N{WARNING SIGN} {escape(tool.problem)}</td></tr></table>"
        )
    if tool.title and tool.title != tool.name:
        parts.append(f"<p><b>{escape(tool.title)}</b></p>")
    if tool.description:
        parts.append(f'<p style="white-space:pre-wrap">{escape(tool.description.strip())}</p>')
    if hints := _hints(tool):
        parts.append(f'<p style="color:{muted}">{escape(" · ".join(hints))}</p>')
    rows = parameters(tool.input_schema)
    if rows:
        parts.append(f"<h4>{escape(translate('ToolPage', 'Parameters'))}</h4>")
        parts.append(_table(rows, theme))
    else:
        parts.append(f'<p style="color:{muted}">{escape(translate("ToolPage", "Takes no parameters."))}</p>')
    outputs = parameters(tool.output_schema)
    if outputs:
        parts.append(f"<h4>{escape(translate('ToolPage', 'Returns'))}</h4>")
        parts.append(_table(outputs, theme))
    return "".join(parts)


def _hints(tool: ToolView) -> list[str]:
    """What the server says of the tool's manners; a client cannot rely on it."""
    notes = {
        "readOnlyHint": translate("ToolPage", "only reads"),
        "destructiveHint": translate("ToolPage", "may delete or overwrite"),
        "idempotentHint": translate("ToolPage", "safe to repeat"),
        "openWorldHint": translate("ToolPage", "reaches the outside world"),
    }
    return [text for key, text in notes.items() if tool.annotations.get(key) is True]


def _table(rows: list[Parameter], theme: Theme) -> str:
    border = theme.color(Token.BORDER).name()
    shown = "".join(_row(row, theme) for row in rows[:_SHOWN])
    more = ""
    if len(rows) > _SHOWN:
        text = translate("ToolPage", "… and {n} more: see the JSON.").format(n=len(rows) - _SHOWN)
        more = f"<p>{escape(text)}</p>"
    return (
        f'<table width="100%" cellspacing="0" cellpadding="6" '
        f'style="border:1px solid {border};border-collapse:collapse">{shown}</table>{more}'
    )


def _row(row: Parameter, theme: Theme) -> str:
    muted, attention = theme.color(Token.MUTED).name(), theme.color(Token.ATTENTION).name()
    border = theme.color(Token.BORDER).name()
    name = f"<b>{escape(row.name).replace('.', '.&#8203;')}</b>"
    if row.required:
        name += f'<br/><span style="color:{attention}">{escape(translate("ToolPage", "required"))}</span>'
    notes = [f'<span style="color:{muted}"><code>{escape(row.type)}</code></span>']
    if row.description:
        notes.append(f'<span style="white-space:pre-wrap">{escape(row.description.strip())}</span>')
    if row.limits:
        notes.append(f'<span style="color:{muted}">{escape(row.limits)}</span>')
    if row.default:
        text = translate("ToolPage", "default: {value}").format(value=row.default)
        notes.append(f'<span style="color:{muted}">{escape(text)}</span>')
    line = f'style="border-bottom:1px solid {border}"'
    return f'<tr><td {line} width="34%" valign="top">{name}</td><td {line} valign="top">{"<br/>".join(notes)}</td></tr>'
