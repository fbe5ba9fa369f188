from __future__ import annotations

import pytest

from mulligan.errors import SettingError
from mulligan.faults.rest import Resource


def ask(resource, method, path="/invoices", body=None, *, key="", client="a"):
    body = body or {}
    return resource.apply(
        method=method, path=path, body=body, client=client, key=key, hash_=repr(body)
    )


def test_a_creation_is_an_effect_and_nothing_stops_a_second_one():
    resource = Resource()
    first, second = ask(resource, "POST", body={"eur": 7}), ask(resource, "POST", body={"eur": 7})
    assert (first.effect, second.effect) == ("POST /invoices/1", "POST /invoices/2")
    assert first.answer.status == 201
    assert ask(resource, "GET").answer.body == {
        "invoices": [{"eur": 7, "id": 1}, {"eur": 7, "id": 2}]
    }


def test_a_key_gets_the_first_answer_again_without_an_effect():
    """R-I5."""
    resource = Resource()
    first, again = ask(resource, "POST", key="k"), ask(resource, "POST", key="k")
    assert again.effect == ""
    assert again.answer.body == first.answer.body
    assert again.answer.headers == {"idempotent-replayed": "true"}


def test_a_key_with_another_payload_is_a_programming_error():
    """E-F3."""
    resource = Resource()
    ask(resource, "POST", body={"eur": 7}, key="k")
    assert ask(resource, "POST", body={"eur": 8}, key="k").answer.status == 422


def test_keys_of_different_clients_do_not_meet():
    """E-F7."""
    resource = Resource()
    ask(resource, "POST", key="k", client="a")
    assert ask(resource, "POST", key="k", client="b").effect == "POST /invoices/2"


def test_a_server_that_ignores_keys_does_it_twice():
    resource = Resource(honours_keys=False)
    assert [ask(resource, "POST", key="k").effect for _ in range(2)] == [
        "POST /invoices/1",
        "POST /invoices/2",
    ]


def test_only_what_changes_something_is_an_effect():
    resource = Resource()
    ask(resource, "POST", body={"eur": 7})
    assert ask(resource, "GET", "/invoices/1").effect == ""
    assert ask(resource, "PUT", "/invoices/1", {"eur": 8}).effect == "PUT /invoices/1"
    assert ask(resource, "PUT", "/invoices/1", {"eur": 8}).effect == ""
    assert ask(resource, "PATCH", "/invoices/1", {"to": "x"}).answer.body == {
        "eur": 8,
        "to": "x",
        "id": 1,
    }
    assert ask(resource, "DELETE", "/invoices/1").effect == "DELETE /invoices/1"
    assert ask(resource, "DELETE", "/invoices/1").answer.status == 404


def test_what_a_method_is_not_for_is_refused():
    resource = Resource()
    ask(resource, "POST")
    assert ask(resource, "DELETE").answer.status == 405
    assert ask(resource, "POST", "/invoices/1").answer.status == 405


@pytest.mark.parametrize("tail", ["9" * 5000, "\u0661", "\u00b2", "-1", "1/2", "x"])
def test_what_is_no_number_of_ours_is_not_found(tail):
    resource = Resource()
    ask(resource, "POST")
    assert ask(resource, "GET", f"/invoices/{tail}").answer.status == 404


def test_a_resource_has_a_name_that_can_stand_in_a_path():
    with pytest.raises(SettingError, match=r"^a resource is named like invoices; got 'a/b'$"):
        Resource(("a/b",))
