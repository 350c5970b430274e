-- post: what wrk posts to an event API; arguments after "--": kind, key, events a request.
--
-- kind: "events" are accepted, "refused" lack their type, "bare" goes to any web server.

local PAD = string.rep("x", 1024)
local BODY = 985 -- octets of an event as it is posted
local thread = 0
local kind, batch, n, bare

function setup(t)
    t:set("id", thread)
    thread = thread + 1
end

function init(args)
    kind, batch, n = args[1], tonumber(args[3]), 0
    wrk.method = "POST"
    wrk.headers["Authorization"] = "Bearer " .. args[2]
    wrk.headers["Content-Type"] = batch > 1 and "application/x-ndjson" or "application/json"
    bare = wrk.format(nil, "/hook", nil, PAD)
end

local function event()
    n = n + 1
    local head = string.format(
        '{"id":"w%d_%010d",%s"asset":"a%d","data":{"n":%d,"note":"', id, n,
        kind == "events" and '"type":"reading",' or "", n % 10000, n)
    return head .. PAD:sub(1, BODY - #head - 3) .. '"}}'
end

function request()
    if kind == "bare" then
        return bare
    end
    local lines = {}
    for i = 1, batch do
        lines[i] = event()
    end
    local path = batch > 1 and "/v1/events/batch" or "/v1/events"
    return wrk.format(nil, path, nil, table.concat(lines, "\n"))
end

function done(summary, latency)
    io.stderr:write(string.format(
        '{"requests": %d, "seconds": %.3f, "not_2xx": %d, "failed": %d, "p50_ms": %.3f, "p99_ms": %.3f}\n',
        summary.requests, summary.duration / 1e6, summary.errors.status,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
        latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
