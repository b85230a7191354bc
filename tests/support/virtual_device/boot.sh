# Sets up a device's view of the file system inside fresh user, mount, PID and time namespaces, and becomes its init.
# Arguments: the tree, the folder whose files cover those of /proc, the size-limited folder ('' for none), its size in bytes, the shell.
set -e
tree=$1 proc=$2 limited=$3 size=$4 shell=$5

# Read from the host's /proc, so this is the process's PID on the host.
read -r pid rest </proc/self/stat

cd "$tree"
mount --bind . .
cd "$tree"
for folder in usr/bin usr/sbin usr/lib usr/lib32 usr/lib64 usr/libexec usr/share lib lib32 lib64 bin sbin; do
    if [ -d "$folder" ] && [ ! -L "$folder" ] && [ -d "/$folder" ]; then
        mount --bind -o ro "/$folder" "$folder"
    fi
done
for node in null zero full random urandom; do
    mount --bind "/dev/$node" "dev/$node"
done
mount -t proc proc proc
# Kernel files that a privileged tester could otherwise change for the whole machine.
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
[ ! -e proc/sysrq-trigger ] || mount --bind /dev/null proc/sysrq-trigger
(cd "$proc" && find . -type f) | while IFS= read -r file; do
    if [ ! -e "proc/$file" ]; then
        echo "this kernel has no /proc/${file#./}, which the snapshot lays its own over" >&2
        exit 1
    fi
    mount --bind "$proc/$file" "proc/$file"
done
if [ -n "$limited" ]; then
    mount -t tmpfs -o "size=$size,mode=0771" tmpfs ".$limited"
fi
pivot_root . .host
cd /
umount -l /.host
echo "ready $pid"
# Reads until the owner exits, then ends and takes everything in the namespaces with it. The shell reaps orphans.
exec "$shell" -c 'while read -r line; do :; done'
