#!/usr/bin/env bash
# Three redis-servers (6379-6381) and three agents (sentinel 26379-26381, DNS 5301-5303, HTTP 9126-9128) here, until Ctrl-C.
# Works on copies in a temporary folder, since agents and Redis rewrite their files; the logs stay there until the end.
# PORT_OFFSET=1000 moves every port by 1000, where these are taken.
set -euo pipefail
offset=${PORT_OFFSET:-0}
redis=$((6379 + offset)) sentinel=$((26379 + offset)) dns=$((5301 + offset)) admin=$((9126 + offset))
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
clone=$(cd "$here/../.." && pwd)
node "$clone/scripts/setup.mjs" --for demo
work=$(mktemp -d)
pids=()

finish() {
  trap - EXIT INT TERM
  # Only what was started here; a process that is gone already is fine.
  if ((${#pids[@]})); then kill "${pids[@]}" 2>/dev/null || true; wait "${pids[@]}" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 0' INT TERM

cp "$here"/*.conf "$here"/*.yaml "$work"
cd "$work"
for i in 2 1 0; do
  sed -i -E "s/\b$((26379 + i))\b/$((sentinel + i))/; s/\b$((6379 + i))\b/$((redis + i))/; s/\b$((5301 + i))\b/$((dns + i))/
    s/\b$((9126 + i))\b/$((admin + i))/" *.conf *.yaml
done
answers() { [[ $(timeout 2 bash -c "exec 3<>/dev/tcp/127.0.0.1/$1 && printf 'PING\r\n' >&3 && head -c 5 <&3" 2>/dev/null) == +PONG ]]; }
for port in $redis $((redis + 1)) $((redis + 2)) $sentinel $((sentinel + 1)) $((sentinel + 2)); do
  if answers "$port"; then echo "run.sh: port $port is taken" >&2; exit 71; fi
done
wait_for() {
  local port=$1 name=$2 _
  for _ in {1..150}; do
    answers "$port" && return
    sleep 0.1
  done
  echo "run.sh: $name does not answer on port $port; its log:" >&2
  tail -n 20 "$name.log" >&2
  exit 1
}

for i in 1 2 3; do
  port=$((redis + i - 1)) replicaof=()
  ((i == 1)) || replicaof=(--replicaof 127.0.0.1 "$redis")
  mkdir "redis-$i"
  redis-server --port "$port" --bind 127.0.0.1 --dir "$work/redis-$i" --save '' --appendonly no "${replicaof[@]}" >"redis-$i.log" 2>&1 &
  pids+=($!)
  wait_for "$port" "redis-$i"
done
for i in 1 2 3; do
  node "$clone/dist/main.js" run --config "$work/pointsman-$i.yaml" >"agent-$i.log" 2>&1 &
  pids+=($!)
  wait_for $((sentinel + i - 1)) "agent-$i"
done

cat <<TEXT
three agents are up; logs in $work
  dig @127.0.0.1 -p $dns +short cache.redis.internal A
  dig @127.0.0.1 -p $dns +short _redis._tcp.cache.redis.internal SRV
  node $clone/dist/main.js status --admin 127.0.0.1:$admin
  redis-cli -p $sentinel sentinel get-master-addr-by-name cache
  kill ${pids[0]}      # the master: then ask again
Ctrl-C stops everything.
TEXT
wait
