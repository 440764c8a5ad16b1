# Name resolution of a machine of its own: a namespace with our DNS on port 53, its resolv.conf, and systemd-resolved beside it.
# sh resolver-namespace.sh SERVER.MJS FOLDER [RESOLVED LIBRARIES [GETADDRINFO]], run by `unshare -n -m`. Prints `what: answer` lines.
set -eu
server=$1 folder=$2 resolved=${3:-} libraries=${4:-} musl=${5:-}
cd "$folder"
ip link set lo up
# systemd-resolved asks nobody on a machine without a network.
ip link add v0 type veth peer name v1
ip addr add 10.99.0.1/24 dev v0
ip link set v0 up
ip link set v1 up
printf 'nameserver 127.0.0.1\noptions timeout:3 attempts:1\n' > resolv.conf
mount --bind resolv.conf "$(readlink -f /etc/resolv.conf)"

node "$server" ours 127.0.0.1 53 3 > ready < /dev/null &
pids=$!
trap 'kill $pids 2> /dev/null || true' EXIT
for _ in $(seq 100); do grep -q ready ready && break; sleep 0.1; done

ask() { what=$1; shift; printf '%s: %s\n' "$what" "$({ "$@" 2>&1 && echo ok || echo "status $?"; } | tr '\n' ' ')"; }
ask 'glibc A' getent ahostsv4 m0.redis.internal
ask 'glibc any' getent ahosts m0.redis.internal
ask 'glibc hosts' getent hosts replica.m1.redis.internal
ask 'glibc none' getent ahosts none.redis.internal
ask 'glibc no address' getent ahosts _tcp.m0.redis.internal
if [ -n "$musl" ]; then
  ask 'musl any' "$musl" m0.redis.internal
  ask 'musl none' "$musl" none.redis.internal
fi
if [ -n "$resolved" ]; then
  mkdir -p systemd
  printf '[Resolve]\nDNS=127.0.0.1:53\nDomains=~redis.internal\n' > systemd/resolved.conf
  mount --bind systemd /etc/systemd
  for file in passwd group; do cp /etc/$file $file; done
  grep -q '^systemd-resolve:' passwd || echo 'systemd-resolve:x:993:993::/:/usr/sbin/nologin' >> passwd
  grep -q '^systemd-resolve:' group || echo 'systemd-resolve:x:993:' >> group
  for file in passwd group; do mount --bind $file /etc/$file; done
  mkdir -p /run/systemd/resolve
  mount -t tmpfs -o mode=0755 tmpfs /run/systemd/resolve
  chown systemd-resolve:systemd-resolve /run/systemd/resolve
  LD_LIBRARY_PATH=$libraries "$resolved" > resolved.log 2>&1 &
  pids="$pids $!"
  resolve() { ask "resolved $2" dig +noall +answer +comments +tries=3 +time=3 @127.0.0.53 "$1" "$2"; }
  for _ in $(seq 50); do dig +tries=1 +time=1 @127.0.0.53 m0.redis.internal A > /dev/null && break; sleep 0.2; done
  resolve m0.redis.internal A
  resolve m0.redis.internal AAAA
  resolve _redis._tcp.m0.redis.internal SRV
  resolve none.redis.internal TXT
fi
