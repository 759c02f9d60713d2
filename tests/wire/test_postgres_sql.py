"""What a statement does is told from its words, whatever else stands among them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.wire.postgres.sql import CACHED_MAX, Classifier, Kind
from chaoskit.wire.postgres.tokens import statements, tokens

WRITES = {
    "insert into T values(1)": ("insert", "t"),
    "INSERT INTO public.\"Foo\" VALUES (';')": ("insert", "public.Foo"),
    "update only t set x = E'a\\'b; commit'": ("update", "t"),
    "delete from only t": ("delete", "t"),
    "merge into t using s on true when matched then delete": ("merge", "t"),
    "truncate table only t, u": ("truncate", "t"),
    "with x as (insert into a values (1) returning *) select * from x": ("insert", "a"),
    "with x as (select 1) update b set c = 1": ("update", "b"),
    "with x as (select 1), y as materialized (delete from d) table y": ("delete", "d"),
    # What a WITH statement does itself is its name, and not what it does on its way.
    "with x as (update a set b = 1 returning 1) update c set d = 1": ("update", "c"),
    "with x as (delete from a) (select 1)": ("delete", "a"),
    "with x as (with y as (delete from a) insert into b table y) table x": (
        *("insert", "b"),
    ),
    "select 1 into temp y": ("create_table", "y"),
    "select nextval('s')": ("nextval", "s"),
    "select pg_catalog.setval('a.s', 3)": ("setval", "a.s"),
    "select a from pay(1) as p (a)": ("select", "pay"),
    "explain (analyze, verbose) delete from t": ("delete", "t"),
    "create table if not exists foo (a int)": ("create_table", "foo"),
    "create unlogged table s.foo as select 1": ("create_table", "s.foo"),
    "create unique index concurrently i on only t (a)": ("create_index", "t"),
    "create or replace function f() returns int": ("create_function", "f"),
    "create materialized view v as select 1": ("create_materialized_view", "v"),
    "refresh materialized view concurrently v": ("refresh_materialized_view", "v"),
    "alter table only t add x int": ("alter_table", "t"),
    "drop table if exists a, b": ("drop_table", "a"),
    "comment on table t is 'x'": ("comment", "t"),
    "grant all on table t to x": ("grant", "t"),
    "create trigger g before insert on t": ("create_trigger", "t"),
    "create extension if not exists pgcrypto": ("create_extension", "pgcrypto"),
    "call s.p(1)": ("call", "s.p"),
    "do $$ begin; end $$": ("do", None),
    "copy (delete from t returning 1) to stdout": ("delete", "t"),
    "copy t from program 'x'": ("copy", "t"),
    "commit prepared 'x'": ("commit_prepared", "tx"),
}
READS = (
    *("select * from t for update of t nowait", "select (select 1) for update"),
    *("table t", "values (1)", "(select 1) union (select 2)", "explain delete from t"),
    *("copy t to stdout", "savepoint a", "release a", "rollback to savepoint a"),
    *("listen x", "notify x, 'insert into t'", "vacuum t", "set a = 1"),
    *(
        "select 'nextval(1)' as \"insert into\"",
        "select harmless(1)",
        "declare c cursor",
    ),
    *("-- insert into t", "/* delete /* from */ t */", "", ";;", "fetch c", "nonsense"),
    *("with x as (select 1) select * from x", "select pg_advisory_lock(1)"),
)


def meanings(sql):
    classifier = Classifier()
    classifier.functions = frozenset({"pay"})
    return classifier.meanings(sql.encode())


@pytest.mark.parametrize(("sql", "label"), WRITES.items())
def test_what_writes(sql, label):
    (meaning,) = meanings(sql)
    assert meaning.kind is Kind.WRITE
    assert (meaning.op, meaning.key) == label


@pytest.mark.parametrize("sql", READS)
def test_what_does_not_write(sql):
    assert {each.kind for each in meanings(sql)} <= {Kind.READ}


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("begin isolation level serializable", Kind.BEGIN),
        ("start transaction read only", Kind.BEGIN),
        ("commit work", Kind.COMMIT),
        ("end", Kind.COMMIT),
        ("prepare transaction 'x'", Kind.COMMIT),
        ("rollback", Kind.ROLLBACK),
        ("abort", Kind.ROLLBACK),
        ("copy t (a, b) from stdin with (format csv)", Kind.COPY_IN),
        ("prepare p (int) as insert into t values ($1)", Kind.PREPARE),
        ("execute p (1)", Kind.EXECUTE),
    ],
)
def test_what_is_more_than_a_write(sql, kind):
    assert [each.kind for each in meanings(sql)] == [kind]


def test_statements_are_told_apart():
    body = "begin atomic select case when true then 1 end; select 2; end"
    sql = f"""/* a; */ select ';' ; -- b;
        create function f() returns int {body}; select $x$ ; $$ ; $x$, (1); commit"""
    kinds = [each.kind for each in meanings(sql)]
    assert kinds == [Kind.READ, Kind.WRITE, Kind.READ, Kind.COMMIT]


@pytest.mark.parametrize(
    "sql", ["create database d", "create index concurrently i on t (a)", "call p()"]
)
def test_what_cannot_be_in_a_transaction_is_known(sql):
    (meaning,) = meanings(sql)
    assert meaning.alone


def test_a_chain_goes_on_at_once():
    assert [each.chain for each in meanings("commit and chain; commit")] == [
        True,
        False,
    ]


def test_what_is_remembered_is_forgotten_with_new_functions():
    classifier = Classifier()
    assert classifier.meanings(b"select f()")[0].kind is Kind.READ
    classifier.functions = frozenset({"f"})
    assert classifier.meanings(b"select f()")[0].kind is Kind.WRITE
    for number in range(CACHED_MAX + 2):
        classifier.meanings(b"select %d" % number)
    assert len(classifier._known) <= CACHED_MAX


@given(st.text(max_size=60))
def test_any_text_has_a_meaning(text):
    meanings(text)


PIECES = st.sampled_from(
    ["';'", '"a;"', "$$;$$", "$t$ ; $$ $t$", "--;\n", "/*;/*;*/*/", "a", "1", "E'\\';'"]
)


@given(st.lists(PIECES, max_size=8), st.lists(PIECES, max_size=8))
def test_a_semicolon_in_a_text_or_comment_is_none(first, second):
    one, other = " ".join(first), " ".join(second)
    both = [each for each in (tuple(tokens(one)), tuple(tokens(other))) if each]
    assert statements(f"{one} ; {other}") == both
