"""What changes a run in Redis: Lua scripts, each of which the server runs as one step.

A script reads everything that it needs before it writes anything: an error in the
middle would leave what was written before it. Times are the server's. The name of its
first key tells a save from a claim, for whoever watches the wire.

Each layout (see `redis_runs`) puts three definitions in front: ``SIZE``, a command that
fails if the key holds something else; ``mark(key)``, which differs whenever what is
there does; and ``write(key, text, whole)``.
"""

_BEGIN = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6

-- All of a run expires at one moment, or nothing: no part of it may outlive another.
local function renew(last, ttl, ...)
  for _, key in ipairs({...}) do
    redis.call('PEXPIREAT', key, string.format('%.0f', (last + ttl) * 1000))
  end
end
"""

_WAKE = """
-- Puts a run where `due` finds it, and returns the last moment that is known of it. One
-- that is due and stays with its holder keeps its place: it is news to nobody.
local function wake(due, run, wake_at, keep)
  if wake_at == '' then
    redis.call('ZREM', due, run)
    return now
  end
  local at = tonumber(wake_at)
  if at <= 0 then
    local since = tonumber(redis.call('ZSCORE', due, run) or now)
    at = keep == '1' and math.min(since, now) or now
  end
  redis.call('ZADD', due, string.format('%.17g', at), run)
  return math.max(at, now)
end
"""

CREATE = f"""{_BEGIN}{_WAKE}
local document, lease, due = unpack(KEYS)
local ttl, run, text = unpack(ARGV)
if redis.call('EXISTS', document, lease) > 0 then return 'there' end
local last = wake(due, run, '0', '0')
write(document, text, true)
redis.call('HSET', lease, 'token', '0', 'takes', '0', 'mark', mark(document))
renew(last, tonumber(ttl), document, lease)
return 'done'
"""

SAVE = f"""{_BEGIN}{_WAKE}
local document, lease, due = unpack(KEYS)
local ttl, run, token, wake_at, keep, after, text = unpack(ARGV)
local held = redis.call('HMGET', lease, 'token', 'owner', 'seconds')
if held[1] ~= token or not held[2] then return 'fenced' end
redis.call(SIZE, document)
if after ~= '' and mark(document) ~= after then return 'changed' end
local last = wake(due, run, wake_at, keep)
write(document, text, after == '')
redis.call('HSET', lease, 'takes', '0', 'mark', mark(document))
if keep == '1' then
  redis.call('HSET', lease, 'until', string.format('%.6f', now + tonumber(held[3])))
else
  redis.call('HDEL', lease, 'owner', 'until', 'seconds')
end
renew(last, tonumber(ttl), document, lease)
return 'done'
"""

CLAIM = f"""{_BEGIN}
local lease, document, due = unpack(KEYS)
local ttl, run, owner, seconds, over, seen = unpack(ARGV)
local held = redis.call('HMGET', lease, 'token', 'owner', 'until', 'takes')
local by = held[2]
if by and by ~= over and tonumber(held[3]) > now then return {{'held'}} end
if mark(document) ~= seen then return {{'changed'}} end
local wakes = tonumber(redis.call('ZSCORE', due, run) or 0)
local token = math.max(tonumber(held[1] or 0) + 1, math.floor(now * 1e6))
local takes = tonumber(held[4] or 0) + 1
token = string.format('%.0f', token)
redis.call('HSET', lease, 'token', token, 'owner', owner, 'takes', takes,
  'until', string.format('%.6f', now + tonumber(seconds)), 'seconds', seconds)
renew(math.max(now, wakes), tonumber(ttl), document, lease)
return {{'done', token, takes}}
"""

RELEASE = """
if redis.call('HGET', KEYS[1], 'token') == ARGV[2] then
  redis.call('HDEL', KEYS[1], 'owner', 'until', 'seconds')
end
"""

FORGET = """
for number, run in ipairs(ARGV) do
  if redis.call('EXISTS', KEYS[2 * number], KEYS[2 * number + 1]) == 0 then
    redis.call('ZREM', KEYS[1], run)
  end
end
"""
