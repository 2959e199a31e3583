#!/bin/busybox sh
# The first process of the virtual machine: a cgroup v2 tree alone, and the tests in it as root and as a user with a delegated subtree.
if [ ! -e /moved ]; then
    # The first tree of a kernel cannot be pivoted away from, so a copy of it becomes the root.
    /bin/busybox mkdir /new
    /bin/busybox mount -t tmpfs new /new
    /bin/busybox cp -a /bin /lib /lib64 /usr /etc /proc /sys /dev /tmp /run /mnt /tests /init /new/
    /bin/busybox touch /new/moved
    exec /bin/busybox switch_root /new /init
fi
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
ip link set lo up
echo "kernel $(uname -r), $(cat /sys/kernel/security/lsm 2>/dev/null)"
groups=/sys/fs/cgroup
echo "+memory +pids +cpu" > $groups/cgroup.subtree_control
export HOME=/tmp PATH=/bin:/usr/bin CELLBLOCK_TEST_VM=1 LD_LIBRARY_PATH=/lib RUST_BACKTRACE=0

tell() { # name, status
    if [ "$2" = 0 ]; then echo "VM ok $1"; else echo "VM FAILED $1 ($2)"; fi
}

for test in cgroups rooms; do
    "/tests/$test"
    tell "$test as root" $?
done

# What systemd does for a user: a subtree of their own, and themselves in a leaf of it.
mkdir $groups/user
echo "+memory +pids +cpu" > $groups/user/cgroup.subtree_control
mkdir $groups/user/session
chown 65534:65534 $groups/user $groups/user/cgroup.procs $groups/user/cgroup.subtree_control $groups/user/cgroup.threads
chown -R 65534:65534 $groups/user/session
for test in cgroups rooms; do
    sh -c "echo \$\$ > $groups/user/session/cgroup.procs; exec su -s /bin/sh nobody -c /tests/$test"
    tell "$test as a user with a delegated subtree" $?
done
echo "left: $(ls $groups | grep -c cellblock) $(ls $groups/user | grep -c cellblock)"
echo "VM done"
poweroff -f
