#!/usr/bin/env bash
# Ceph with its S3 gateway on loopback, of one node, as a store for tests.
# usage: ceph.sh up|down     `up` prints the environment that reaches it
# Needs root, and installs Debian's packages where they are missing. Everything is in $STORES_HOME/ceph.
set -euo pipefail
. "$(dirname "$0")/common.sh"
home=$STORES_HOME/ceph
conf=$home/ceph.conf

stop() { stop_all "$home"/run/{client.rgw.a,osd.0,mgr.x,mon.a}.pid; rm -rf "$home"; }

case ${1:-} in
  up) ;;
  down) stop; exit ;;
  *) echo "usage: ceph.sh up|down" >&2; exit 2 ;;
esac
packages radosgw ceph-mon ceph-mgr ceph-osd radosgw ceph-common uuid-runtime curl
stop
mkdir -p "$home"/{mon,mgr,osd,rgw,run,log}
monitor=$(free_port) gateway=$(free_port)
fsid=$(uuidgen)
cat >"$conf" <<CONF
[global]
fsid = $fsid
mon_host = [v1:127.0.0.1:$monitor]
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
admin_socket = $home/run/\$name.asok
log_file = $home/log/\$name.log
pid_file = $home/run/\$name.pid
keyring = $home/\$name.keyring
[mon]
mon_data = $home/mon
keyring = $home/mon.keyring
[mgr]
mgr_data = $home/mgr
[osd]
osd_data = $home/osd
osd_objectstore = bluestore
bluestore_block_size = 10737418240
osd_memory_target = 1073741824
keyring = $home/osd/keyring
[client.rgw.a]
rgw_frontends = beast endpoint=127.0.0.1:$gateway
rgw_data = $home/rgw
rgw_enable_usage_log = false
CONF
export CEPH_CONF=$conf
trap 'cat "$home/log/up" >&2; echo "ceph.sh: Ceph does not start; its logs are in $home/log" >&2' ERR
(
  ceph-authtool --create-keyring "$home/mon.keyring" --gen-key --name mon. --cap mon 'allow *'
  ceph-authtool --create-keyring "$home/client.admin.keyring" --gen-key --name client.admin \
    --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *'
  ceph-authtool "$home/mon.keyring" --import-keyring "$home/client.admin.keyring"
  monmaptool --create --addv a "[v1:127.0.0.1:$monitor]" --fsid "$fsid" "$home/monmap"
  ceph-mon --mkfs --id a --monmap "$home/monmap" --keyring "$home/mon.keyring"
  ceph-mon --id a --public-addr 127.0.0.1
  timeout 60 ceph auth get-or-create mgr.x mon 'allow profile mgr' osd 'allow *' -o "$home/mgr.x.keyring"
  ceph-mgr --id x
  osd=$(uuidgen) secret=$(ceph-authtool --gen-print-key)
  printf '{"cephx_secret": "%s"}' "$secret" | ceph osd new "$osd" --in-file -
  ceph-authtool --create-keyring "$home/osd/keyring" --name osd.0 --add-key "$secret"
  ceph-osd --id 0 --mkfs --osd-uuid "$osd"
  ceph osd crush add osd.0 1 host=one root=default
  ceph-osd --id 0
  ceph auth get-or-create client.rgw.a mon 'allow rw' osd 'allow rwx' -o "$home/client.rgw.a.keyring"
  radosgw --name client.rgw.a
) >"$home/log/up" 2>&1
trap - ERR
wait_for "http://127.0.0.1:$gateway/" "$home/log"
radosgw-admin user create --uid=tests --display-name=tests --access-key=access --secret=secret >>"$home/log/up" 2>&1
# The digest is that of no body: this curl sends none, and the gateway wants one.
make_buckets "http://127.0.0.1:$gateway" --aws-sigv4 aws:amz:us-east-1:s3 --user access:secret \
  --header "x-amz-content-sha256: $(sha256sum </dev/null | cut -d' ' -f1)"
print_environment "http://127.0.0.1:$gateway" access secret "Ceph 16.2"
