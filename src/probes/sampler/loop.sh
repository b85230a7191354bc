# The sampler's loop on the device. It evaluates commands, which arrive as lines on standard input, and prints
# lines whose fields are separated by US (0x1f), and lines of tables within them by RS (0x1e). A tick starts
# no process if the shell can wait on its input. Arithmetic stays below 2^31, which is all that mksh can do.
LC_ALL=C
exec 2>/dev/null
S=$(printf '\037')
R=$(printf '\036')
Z='
'
if [ -n "$KSH_VERSION" ];then P='print -r --';else P='printf %s\n';fi
N=
(read -n 5 x </dev/null)
[ $? = 1 ]&&N='-n 512'
# With a limit, only mksh is faster at reading a single line.
V=
[ -n "$KSH_VERSION" ]&&V=$N
T=n
(read -t 1 x </dev/null)
[ $? = 1 ]&&T=y
# now: microseconds modulo 10^9 after a leading 1, so that no number begins with 0.
if [ -n "$EPOCHREALTIME" ];then
now(){
a=${EPOCHREALTIME#???????}
n=1${a%.*}${a#*.}
}
else
now(){
read $V -r a b </proc/uptime
a=00000${a%.*}${a#*.}
a=${a#"${a%?????}"}
n=1${a}0000
}
fi
# c INDEX PATH: puts the changed content v on the line, or why there is none. With a limit, mksh reads past
# the end of the line.
c(){
v=${v%%"$Z"*}
case $v in
'')if [ -e "$2" ];then if [ -r "$2" ];then j=e;else j=d;fi;else j=a;fi
L="$L$S$1!$j"
G="$G $1";;
*"$S"*)L="$L$S$1!x";;
*)if [ ${#v} -gt 60000 ];then L="$L$S$1!l";else L="$L$S$1=$v";fi;;
esac
}
# g PREFIX PATH: reads the first lines of a file, those that begin with PREFIX, into v. Shells read lines byte
# by byte, so mksh reads everything at once, as an array, and next time (q) only a few bytes more than these
# lines had.
O=16384
q=$O
if [ -n "$V" ];then
g(){
set -A A --
IFS=$Z read -n $q -r -A A <"$2"
v=
if [ $q = $O ];then
for a in "${A[@]}";do case $a in "$1"*)v=$v$R$a;;*)q=$((${#v}+9));return;;esac;done
return
fi
n=$((${#A[*]}-1))
case ${A[n]} in
''|"$1"*);;
*)case $1 in "${A[n]}"*);;*)case ${A[n-1]} in "$1"*)
unset A[n]
a=$IFS
IFS=$R
v=$R"${A[*]}"
IFS=$a
return;;esac;;esac;;
esac
q=$O
g "$@"
}
else
g(){
v=
while read -r a||[ -n "$a" ];do case $a in "$1"*)v=$v$R$a;;*)break;;esac;done <"$2"
}
fi
# E: executes the command c, after the part of it that an earlier read took (H): shells read byte by byte, and
# on a busy device the time limit may expire in the middle of a line.
H=
E(){
c=$H$c
H=
eval "$c"
}
# D STATUS: handles a failed read of c: a timeout, or the end of the input, which ends the loop.
D(){
[ $1 -gt 128 ]&&{
[ "$c" = '~' ]||H=$H$c
return
}
[ "$c" = '~' ]&&return
exit 0
}
# Q TOKEN: answers a time query.
Q(){
e=$EPOCHREALTIME
read $V -r u x </proc/uptime
$P "Q$S$1$S$e$S$u"
}
# U: reports the CPU time of this shell and of its children, once a second, and has gaps reported again.
U(){
v=
a=
read $V -r v </proc/self/schedstat
read $V -r a </proc/self/stat
$P "U$S$i$S$v$S${a%%"$Z"*}"
for b in $G;do eval "o$b='~~'";done
G=
}
# M: executes commands until go.
M(){
while read -r c;do case $c in go)return;;*)eval "$c";;esac;done
exit 0
}
# B: checks for a command without waiting.
B(){
[ $y = 0 ]&&[ $T = y ]&&{
c='~'
if read -t 0.001 -r c;then E;else D $?;fi
}
y=0
}
# W: waits for the next tick (p microseconds after the previous one, m) and for commands.
W(){
now
m=$((m+p))
w=$((m-n))
# The usual case, for shells that wait exactly as long as requested.
case $V$BASH_VERSION$(((w>=200)+(w<=p)+(p<=1000000)+(m<2000000000))) in ?*4)
w=$((999999+w))
y=1
c='~'
if read -t 0.${w#1} -r c;then E;now;else
D $?
return
fi;;esac
[ $m -ge 2000000000 ]&&m=$((m-1000000000))
while :;do
w=$((m-n))
[ $w -gt 500000000 ]&&w=$((w-1000000000))
[ $w -lt -500000000 ]&&w=$((w+1000000000))
if [ $w -lt -$p ];then
m=$n
return
elif [ $w -lt 200 ];then return
elif [ $w -gt $p ];then
m=$((n+p))
[ $m -ge 2000000000 ]&&m=$((m-1000000000))
w=$p
fi
z=$((w/1000000))
w=$((1000000+w%1000000))
y=1
if [ $T = y ];then
c='~'
if read -t $z.${w#1} -r c;then E;else D $?;fi
else sleep $z.${w#1}||sleep 1;fi
[ $p = 0 ]&&return
now
done
}
# X: the loop: runs f every tick, t when the tenth of a second changes, s when the second does.
X(){
now
m=$n
while :;do
e=$EPOCHREALTIME
read $V -r u x </proc/uptime
i=$((i+1))
L=
g=f
f
case $u in "$h"?);;*)
h=${u%?}
g=ft
t
case $u in "$d".*);;*)
d=${u%%.*}
g=fts
s
U;;esac
B;;esac
$P "T$S$i$S$e$S$u$S$g$L"
[ $p = 0 ]||W
done
}
# Y: the loop for slow files: f prints a line for each, and every h rounds s prints one for each service.
Y(){
now
m=$n
d=0
while :;do
f
[ $d = 0 ]&&s
d=$(((d+1)%h))
U
W
done
}
f(){ :;}
t(){ :;}
s(){ :;}
p=50000
i=0
y=0
k=0
l=X
G=
h=
d=
m=0
$P "H$S$T$S$EPOCHREALTIME$S$$"
M
# A shell that cannot wait on its input has a second shell do it.
[ $T = n ]&&{
exec 3<&0
(
while read -r c;do case $c in exit)break;;*)eval "$c";;esac;done
kill $$
) <&3 &
}
$l
