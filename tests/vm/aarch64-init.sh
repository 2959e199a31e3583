#!/bin/sh
# The first program of the virtual machine of `cargo xtask aarch64`: runs the listed programs, and reports on the console.
set -u
here=/srv
mkdir -p /dev/shm /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t devpts -o ptmxmode=666 pts /dev/pts
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t tmpfs -o mode=755 groups /sys/fs/cgroup
mkdir /sys/fs/cgroup/memory
if mount -t cgroup -o memory memory /sys/fs/cgroup/memory 2> /dev/null; then
    for controllers in pids cpu,cpuacct; do
        mkdir "/sys/fs/cgroup/$controllers"
        mount -t cgroup -o "$controllers" "$controllers" "/sys/fs/cgroup/$controllers"
    done
else
    umount /sys/fs/cgroup
    mount -t cgroup2 cgroup /sys/fs/cgroup
    echo "+memory +pids +cpu" > /sys/fs/cgroup/cgroup.subtree_control
fi

# QEMU's user network, on which the image's packages are downloaded.
ip link set lo up
modprobe virtio_net
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2

# Programs of tests know the paths that they were compiled at.
. "$here/places"
mkdir -p "$workspace"
mount --bind "$here/workspace" "$workspace"
# Usually a directory of the workspace.
mkdir -p "$target"
mount --bind "$here/target" "$target"
mount /dev/vdb /var/lib/cellblock
export HOME=/var/lib/cellblock PATH=/usr/sbin:/usr/bin CELLBLOCK_HOME=/var/lib/cellblock
# Snapshots are found without asking cargo.
export CELLBLOCK_SKIPS=/tmp/skips.jsonl RUST_BACKTRACE=0 INSTA_WORKSPACE_ROOT="$workspace"
if [ -e "$here/certificates.crt" ]; then
    export SSL_CERT_FILE="$here/certificates.crt"
fi

echo "VM kernel $(uname -rm), pages of $(getconf PAGESIZE) bytes, up for $(cut -d' ' -f1 /proc/uptime) s"
while read -r name folder command; do
    echo "VM start $name"
    begin=$(date +%s)
    # Not to the console directly: a program would draw its progress there.
    (cd "$folder" && CARGO_MANIFEST_DIR=$folder timeout 3600 sh -c "$command") < /dev/null > /tmp/said 2>&1
    status=$?
    # The last line may lack its end.
    sed '' /tmp/said
    echo "VM ended $name $status $(($(date +%s) - begin))"
done < "$here/plan"
if [ -e /tmp/skips.jsonl ]; then
    sort -u /tmp/skips.jsonl | sed 's/^/VM skip /'
fi
umount /var/lib/cellblock
sync
echo "VM done"
busybox poweroff -f
