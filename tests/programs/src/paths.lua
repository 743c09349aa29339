-- For wrk: asks for each of the paths behind `--` in turn.
local requests, turn = {}, 0

function init(paths)
  for i, path in ipairs(paths) do requests[i] = wrk.format("GET", path) end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end
