"""Edits of the roster that a person makes: checked while they type, secrets stored before the file is written."""

from typing import Any

from callboard.api.schema import EntryEdit, FieldProblem, RosterEdit, SecretHint, Validation
from callboard.core.credentials import find_credentials
from callboard.core.roster_parse import check_entry, name_problem
from callboard.engine.roster_file import RosterFile
from callboard.engine.secrets.store import SecretStore


class RosterEditor:
    """Between the control API and the roster's file. Engine loop only."""

    def __init__(self, roster_file: RosterFile, secrets: SecretStore) -> None:
        self._file = roster_file
        self._secrets = secrets

    def validate(self, name: str, entry: dict[str, Any], editing: str) -> Validation:
        """What is wrong with an entry under edit, and which of its values look like credentials."""
        problems = []
        others = [other for other in self._file.roster.servers if other != editing]
        if why := name_problem(name, others):
            problems.append(FieldProblem(field="name", message=f"{why[:1].upper()}{why[1:]}."))
        _, found = check_entry(entry)
        problems += [FieldProblem(field=problem.field, message=problem.text) for problem in found]
        hints = find_credentials(name, entry, self._secrets.names)
        return Validation(
            problems=problems,
            hints=[SecretHint(field=hint.field, secret=hint.secret, why=hint.why) for hint in hints],
        )

    async def save(self, name: str, edit: EntryEdit) -> RosterEdit:
        """Store the secrets, then write the entry; a secret that cannot be stored leaves the file as it is."""
        for secret, value in edit.secrets.items():
            await self._secrets.set(secret, value)
        return await self._file.save_entry(
            name, edit.entry, revision=edit.revision, rename=edit.rename, create=edit.create
        )


def refers_to_secrets(value: Any) -> bool:
    """Whether an entry, right or wrong, names a secret anywhere."""
    if isinstance(value, str):
        return "${secret:" in value
    if isinstance(value, dict):
        return bool(value.get("secret")) or any(refers_to_secrets(item) for item in value.values())
    return isinstance(value, list) and any(refers_to_secrets(item) for item in value)
