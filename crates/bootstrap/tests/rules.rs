//! The firewall's rules and the watch on the API server, as the machine runs them.
#![allow(clippy::unwrap_used)]

mod cases;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use cases::{is_root, join_of, program};
use scarpenter_bootstrap::{Opened, open, render};

fn opened(case: &str) -> Opened {
    open(render(&join_of(case)).unwrap().bytes()).unwrap()
}

/// A folder that goes with the test, however it ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("scarpenter-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Two machines on one wire, in namespaces that end with the shell: "outside" has the neighbour's addresses,
/// "machine" has the rules. Its end of the wire is a macvlan, which like a network card is of no kind that pods use.
const STAGE: &str = r#"
set -eu
ip link set lo up
unshare --net sleep 60 & outside=$!
until [ "$(readlink /proc/$outside/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
far() { nsenter --net=/proc/$outside/ns/net "$@"; }
ip link add wire type veth peer name card netns $outside
ip link add link wire name card type macvlan mode bridge
ip link set wire up
ip link set card up
far ip link set lo up
far ip link set card up
ip address add 198.51.100.1/24 dev card
for address in 198.51.100.2/24 10.1.2.3/32 192.0.2.7/32; do far ip address add $address dev card; done
ip route add 10.1.2.3/32 dev card; ip route add 192.0.2.7/32 dev card
# A pod behind a bridge of its own.
unshare --net sleep 60 & pod=$!
until [ "$(readlink /proc/$pod/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
inside() { nsenter --net=/proc/$pod/ns/net "$@"; }
ip link add cni0 type bridge; ip address add 10.42.0.1/24 dev cni0; ip link set cni0 up
ip link add veth1 type veth peer name eth0 netns $pod
ip link set veth1 master cni0 up
inside ip link set lo up; inside ip address add 10.42.0.2/24 dev eth0; inside ip link set eth0 up
inside ip route add default via 10.42.0.1
echo 1 >/proc/sys/net/ipv4/ip_forward
far ip address add 169.254.169.254/32 dev card; ip route add 169.254.169.254/32 dev card
far ip route add 10.42.0.0/24 via 198.51.100.1
cat >"$DIR/serve.py" <<'PY'
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
s = socket.create_server((address, port))
print("ready", flush=True)
while True:
    c, _ = s.accept(); c.sendall(b"hello"); c.close()
PY
cat >"$DIR/call.py" <<'PY'
import socket, sys
try:
    c = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=float(sys.argv[4]), source_address=(sys.argv[3], 0))
    print("open" if c.recv(9) == b"hello" else "closed")
except OSError:
    print("closed")
PY
python3 "$DIR/serve.py" 198.51.100.1 10250 >"$DIR/one" &
python3 "$DIR/serve.py" 127.0.0.1 10248 >"$DIR/two" &
far python3 "$DIR/serve.py" 198.51.100.2 443 >"$DIR/three" &
far python3 "$DIR/serve.py" 169.254.169.254 80 >"$DIR/four" &
far python3 "$DIR/serve.py" 169.254.169.254 53 >"$DIR/five" &
inside python3 "$DIR/serve.py" 10.42.0.2 8080 >"$DIR/six" &
for name in one two three four five six; do until [ -s "$DIR/$name" ]; do sleep 0.05; done; done
ask() { echo "$1: $(shift; "$@")"; }
look() {
    ask "$1 stranger" far python3 "$DIR/call.py" 198.51.100.1 10250 198.51.100.2 $2
    ask "$1 range" far python3 "$DIR/call.py" 198.51.100.1 10250 10.1.2.3 $2
    ask "$1 address" far python3 "$DIR/call.py" 198.51.100.1 10250 192.0.2.7 $2
    ask "$1 stranger to pod" far python3 "$DIR/call.py" 10.42.0.2 8080 198.51.100.2 $2
    ask "$1 loopback" python3 "$DIR/call.py" 127.0.0.1 10248 127.0.0.1 2
    ask "$1 going out" python3 "$DIR/call.py" 198.51.100.2 443 198.51.100.1 2
    ask "$1 pod to machine" inside python3 "$DIR/call.py" 198.51.100.1 10250 10.42.0.2 2
    ask "$1 pod going out" inside python3 "$DIR/call.py" 198.51.100.2 443 10.42.0.2 2
    ask "$1 pod to metadata" inside python3 "$DIR/call.py" 169.254.169.254 80 10.42.0.2 $2
    ask "$1 pod to the name server there" inside python3 "$DIR/call.py" 169.254.169.254 53 10.42.0.2 2
    ask "$1 machine to metadata" python3 "$DIR/call.py" 169.254.169.254 80 198.51.100.1 2
}
look before 2
nft -f "$DIR/firewall.nft"
nft -f "$DIR/firewall.nft"
look after 0.5
"#;

#[test]
fn what_is_not_allowed_stays_outside_and_pods_and_the_machine_go_on() {
    let needed = ["nft", "ip", "unshare", "nsenter", "python3"];
    if needed.iter().any(|name| program(name).is_none()) || !is_root() {
        eprintln!("not run: network namespaces need root and {}", needed.join(", "));
        return;
    }
    let temporary = Temporary::new("firewall");
    let opened = opened("firewall");
    let text = |path: &str| String::from_utf8(opened.file(path).unwrap().to_vec()).unwrap();
    let included = "/etc/scarpenter/firewall-allowed*.nft";
    let rules = text("/etc/scarpenter/firewall.nft");
    assert!(rules.contains(included));
    let here = temporary.0.join("firewall-allowed*.nft");
    temporary.write("firewall.nft", &rules.replace(included, here.to_str().unwrap()));
    temporary.write("firewall-allowed.nft", &text("/etc/scarpenter/firewall-allowed.nft"));
    let output = Command::new("unshare")
        // With a process namespace of its own, whatever it started ends with it.
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", STAGE])
        .env("DIR", &temporary.0)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    for line in said.lines().filter(|line| line.starts_with("before")) {
        assert!(line.ends_with(": open"), "without rules nothing is closed: {said}");
    }
    for (what, expected) in [
        ("stranger", "closed"),
        ("range", "open"),
        ("address", "open"),
        ("stranger to pod", "closed"),
        ("loopback", "open"),
        ("going out", "open"),
        ("pod to machine", "open"),
        ("pod going out", "open"),
        ("pod to metadata", "closed"),
        ("pod to the name server there", "open"),
        ("machine to metadata", "open"),
    ] {
        let line = format!("after {what}: {expected}");
        assert!(said.lines().any(|said| said == line), "{line:?} is not in\n{said}");
    }
}

/// The watch with all its paths below a folder, and with a `curl` and a `systemctl` of the test's own.
struct Watch {
    folder: Temporary,
    script: PathBuf,
}

impl Watch {
    fn new(name: &str) -> Self {
        let folder = Temporary::new(name);
        let root = folder.0.to_str().unwrap().to_owned();
        let opened = opened("everything");
        let script = String::from_utf8(opened.file("/opt/scarpenter/api-watch").unwrap().to_vec()).unwrap();
        let script = ["/run/", "/var/lib/", "/etc/scarpenter/", "/proc/uptime"]
            .iter()
            .fold(script, |script, path| script.replace(path, &format!("{root}{path}")));
        for below in
            ["run", "var/lib/kubelet/pki", "var/lib/rancher/k3s/agent", "etc/scarpenter", "proc", "bin"]
        {
            std::fs::create_dir_all(folder.0.join(below)).unwrap();
        }
        let script = folder.write("api-watch", &script);
        let servers = opened.file("/etc/scarpenter/api-servers").unwrap();
        std::fs::write(folder.0.join("etc/scarpenter/api-servers"), servers).unwrap();
        folder.write("bin/curl", &format!("#!/bin/sh\necho \"$@\" >>{root}/asked\ntest -e {root}/answers\n"));
        folder.write("bin/systemctl", &format!("#!/bin/sh\necho \"$@\" >>{root}/told\n"));
        Self { folder, script }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn at(&self, uptime: u64) -> Output {
        std::fs::write(self.path("proc/uptime"), format!("{uptime}.25 17.00\n")).unwrap();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let output = Command::new("bash")
            .arg(&self.script)
            .env("PATH", path)
            .env("UNREACHABLE_AFTER", "600")
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn powered_off(&self) -> bool {
        std::fs::read_to_string(self.path("told")).is_ok_and(|told| told == "poweroff\n")
    }
}

fn touch(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[test]
fn a_machine_that_has_not_joined_is_not_the_watchs_affair() {
    let watch = Watch::new("watch-new");
    for uptime in [30, 5000, 9000] {
        watch.at(uptime);
    }
    assert!(!watch.powered_off() && !watch.path("asked").exists());
    // Joined late, the time before does not count.
    touch(&watch.path("var/lib/rancher/k3s/agent/client-kubelet.crt"));
    watch.at(9030);
    assert!(!watch.powered_off() && watch.path("asked").exists());
}

#[test]
fn a_machine_powers_off_only_when_no_server_answered_for_so_long() {
    let watch = Watch::new("watch-joined");
    touch(&watch.path("var/lib/kubelet/pki/kubelet-client-current.pem"));
    touch(&watch.path("answers"));
    watch.at(100);
    let asked = std::fs::read_to_string(watch.path("asked")).unwrap();
    assert_eq!(asked.lines().count(), 1, "{asked}");
    assert!(asked.contains("--cacert /etc/kubernetes/ca.crt https://100.64.0.1:6443/livez"), "{asked}");
    std::fs::remove_file(watch.path("answers")).unwrap();
    for uptime in [130, 699] {
        watch.at(uptime);
        assert!(!watch.powered_off(), "at {uptime}");
    }
    let asked = std::fs::read_to_string(watch.path("asked")).unwrap();
    assert!(asked.contains("--connect-to ::[fd00::3]:6443 https://kubernetes.default/livez"), "{asked}");
    touch(&watch.path("answers"));
    watch.at(699);
    std::fs::remove_file(watch.path("answers")).unwrap();
    watch.at(1298);
    assert!(!watch.powered_off(), "it answered in between");
    let said = watch.at(1299).stdout;
    assert!(watch.powered_off(), "{}", String::from_utf8_lossy(&said));
}
