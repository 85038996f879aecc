"""What a request is judged by is what its server reads."""

from typing import Any

import pytest

from tests.support.gateway import LegacyClient, ModernClient, TestGateway, text_of

ARGUMENT = {"argument": {"name": "who", "value": "x"}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "echo", "Name": "raw", "arguments": {}}),
        ("tools/call", {"name": "echo", "arguments": {}, "ARGUMENTS": {}}),
        ("tools/call", {"name": "echo", "argument\u017f": {}}),  # a long s is an s where case is folded
        ("tools/call", {"name": "echo", "RequestState": "x"}),
        ("prompts/get", {"name": "greet", "NAME": "other"}),
        ("resources/read", {"uri": "doc://one/readme", "Uri": "doc://two/readme"}),
        ("resources/subscribe", {"uri": "doc://one/readme", "URI": "doc://two/readme"}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "greet"}, "Ref": {}, **ARGUMENT}),
        ("tasks/get", {"taskId": "mine", "taskid": "yours"}),
        ("tasks/get", {"taskId": "mine", "tas\u212aId": "yours"}),
    ],
)
async def test_members_that_differ_by_case_alone_are_refused(
    legacy: TestGateway, method: str, params: dict[str, Any]
) -> None:
    for scope in ("one", ""):
        old, new = legacy.legacy(scope), legacy.modern(scope)
        async with old, new:
            await old.initialize()
            clients: list[LegacyClient | ModernClient] = [old, new] if method != "resources/subscribe" else [old]
            for client in clients:
                refused = (await client.request(method, params))["error"]
                assert (refused["code"], "but for upper and lower case" in refused["message"]) == (-32602, True)


async def test_members_that_are_nothing_of_ours_pass(legacy: TestGateway) -> None:
    async with legacy.legacy("one") as client:
        await client.initialize()
        params = {"name": "echo", "arguments": {"text": "x", "Name": "y", "URI": "z"}, "task": {}, "Extra": 1}
        assert text_of(await client.request("tools/call", params)) == "x"
        custom = (await client.request("custom/method", {"Name": "x"}))["error"]
        assert custom["code"] == -32601
