-- Lets one more through in every line (KEYS), or in none. ARGV holds for each line the microseconds between two and how
-- many may come at once. Returns 0, or the microseconds until all of them would let one through. It is limit.go's next.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local wait, after = 0, {}
for i, line in ipairs(KEYS) do
  local every = tonumber(ARGV[2 * i - 1])
  local reach = every * tonumber(ARGV[2 * i])
  local due = tonumber(redis.call('GET', line) or now) or now
  after[i] = math.min(math.max(due, now), now + reach) + every
  wait = math.max(wait, after[i] - reach - now)
end
if wait > 0 then
  return wait
end
for i, line in ipairs(KEYS) do
  redis.call('SET', line, string.format('%.0f', after[i]), 'PX', math.ceil((after[i] - now) / 1000))
end
return 0
