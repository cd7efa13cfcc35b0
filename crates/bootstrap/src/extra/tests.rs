use serde_json::json;

use super::*;
use crate::parts::Parts;

fn ours() -> v3_3::Config {
    let mut parts = Parts::default();
    parts.file("/etc/hostname", "node\n");
    parts.link("/etc/extensions/kubernetes.raw", "/opt/x.raw");
    parts.enabled("kubelet.service", "[Service]\nExecStart=/x\n[Install]\nWantedBy=multi-user.target\n");
    parts.dropin("kubelet.service", "mesh.conf", "[Unit]\nAfter=mesh.service\n");
    parts.masked("update-engine.service");
    parts.into_config()
}

fn document(parts: Value) -> String {
    let mut value = parts;
    value["ignition"] = json!({"version": "3.3.0"});
    value.to_string()
}

fn merged(parts: Value) -> Result<Value, Error> {
    merge(ours(), &document(parts)).map(|config| serde_json::to_value(&config).unwrap())
}

#[test]
fn everything_of_ignition_is_taken_over() {
    let all = json!({
        "kernelArguments": {"shouldExist": ["quiet"]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 A"]}], "groups": [{"name": "g"}]},
        "storage": {
            "directories": [{"path": "/etc/scarpenter"}],
            "disks": [{"device": "/dev/sdb", "partitions": [{"label": "data", "number": 1}]}],
            "filesystems": [{"device": "/dev/sdb1", "format": "ext4", "path": "/var/lib/data"}],
            "files": [{"path": "/etc/motd", "contents": {"source": "data:,hello"}}],
            "links": [{"path": "/etc/a", "target": "/etc/motd"}],
            "luks": [{"name": "crypt", "device": "/dev/sdc", "clevis": {"tpm2": true}}],
            "raid": [{"name": "md0", "level": "raid1", "devices": ["/dev/sdd", "/dev/sde"]}],
        },
        "systemd": {"units": [
            {"name": "a.service", "contents": "[Service]\nExecStart=/x \\\n  # goes on\n"},
            {"name": "kubelet.service", "dropins": [{"name": "more.conf", "contents": "[Service]\nNice=5\n"}]},
        ]},
    });
    let out = merged(all.clone()).unwrap();
    for pointer in [
        "/kernelArguments/shouldExist/0",
        "/passwd/users/0/sshAuthorizedKeys/0",
        "/passwd/groups/0/name",
        "/storage/directories/0/path",
        "/storage/disks/0/partitions/0/label",
        "/storage/filesystems/0/path",
        "/storage/luks/0/clevis/tpm2",
        "/storage/raid/0/devices/1",
    ] {
        assert_eq!(out.pointer(pointer), all.pointer(pointer), "{pointer}");
    }
    assert_eq!(out["storage"]["files"][1]["path"], "/etc/motd");
    assert_eq!(out["storage"]["links"][1]["path"], "/etc/a");
    let kubelet = &out["systemd"]["units"][0];
    assert_eq!(
        (&kubelet["dropins"][0]["name"], &kubelet["dropins"][1]["name"]),
        (&json!("mesh.conf"), &json!("more.conf"))
    );
    assert_eq!(
        (&kubelet["enabled"], &out["systemd"]["units"][2]["name"]),
        (&json!(true), &json!("a.service"))
    );
    assert_eq!(out["ignition"]["version"], "3.3.0");
}

#[test]
fn older_versions_are_read_and_newer_ones_are_named() {
    for version in ["3.0.0", "3.1.0", "3.2.0", "3.3.0"] {
        let text = json!({"ignition": {"version": version}}).to_string();
        assert_eq!(check(&text), Ok(()), "{version}");
    }
    for version in ["3.4.0", "3.3.0-experimental", "2.3.0", "4.0.0", "new"] {
        let text = json!({"ignition": {"version": version}}).to_string();
        assert_eq!(check(&text), Err(Error::Version(version.to_owned())), "{version}");
    }
    assert_eq!(check("{}"), Err(Error::Version(String::new())));
    let unknown = json!({"ignition": {"version": "3.2.0"}, "kernelArguments": {"shouldExist": ["quiet"]}});
    let error = check(&unknown.to_string()).unwrap_err();
    assert_eq!(error.to_string(), "Ignition 3.2.0 knows no kernelArguments");
}

#[test]
fn what_is_no_ignition_is_told_without_its_text() {
    for text in [
        "",
        "variant: flatcar",
        "{\"ignition\": {\"version\": \"3.3.0\"}, \"passwd\": \"hunter2\"}",
        "{\"a\": hunter2}",
    ] {
        let error = check(text).unwrap_err();
        let shape = matches!(error, Error::Shape { .. });
        assert!(shape && !error.to_string().contains("hunter2"), "{text:?}: {error}");
    }
}

#[test]
fn a_conflict_names_both_sides() {
    let file = |path: &str| json!({"storage": {"files": [{"path": path}]}});
    let unit = |unit: Value| json!({"systemd": {"units": [unit]}});
    for (parts, theirs, ours) in [
        (file("/etc/hostname"), "storage.files.0 /etc/hostname", "storage.files.0 /etc/hostname"),
        (file("/etc/hostname/below"), "storage.files.0 /etc/hostname/below", "storage.files.0 /etc/hostname"),
        (file("/etc"), "storage.files.0 /etc", "storage.files.0 /etc/hostname"),
        (
            json!({"storage": {"directories": [{"path": "/etc/extensions/kubernetes.raw"}]}}),
            "storage.directories.0",
            "storage.links.0 /etc/extensions/kubernetes.raw",
        ),
        (file("/etc/systemd/system/kubelet.service"), "storage.files.0", "unit kubelet.service"),
        (file("/etc/systemd/system/kubelet.service.d/mesh.conf"), "storage.files.0", "unit kubelet.service"),
        (
            unit(json!({"name": "kubelet.service", "contents": "[Service]\n"})),
            "contents of unit kubelet",
            "kubelet",
        ),
        (unit(json!({"name": "kubelet.service", "mask": true})), "mask or contents", "kubelet.service"),
        (unit(json!({"name": "kubelet.service", "enabled": false})), "enabling of unit kubelet", "kubelet"),
        (
            unit(json!({"name": "update-engine.service", "enabled": true})),
            "mask or contents",
            "update-engine",
        ),
        (
            unit(json!({"name": "kubelet.service", "dropins": [{"name": "mesh.conf", "contents": ""}]})),
            "drop-in mesh.conf of unit kubelet.service",
            "kubelet.service",
        ),
    ] {
        let Err(Error::Conflict { theirs: got_theirs, ours: got_ours }) = merged(parts.clone()) else {
            panic!("no conflict: {parts}")
        };
        assert!(got_theirs.contains(theirs) && got_ours.contains(ours), "{got_theirs} / {got_ours}");
    }
}

#[test]
fn what_leads_elsewhere_is_refused() {
    for (key, value) in
        [("replace", json!({"source": "https://x/"})), ("merge", json!([{"source": "data:,"}]))]
    {
        let text = json!({"ignition": {"version": "3.3.0", "config": {key: value}}}).to_string();
        assert!(matches!(check(&text), Err(Error::Remote(_))), "{key}");
    }
}

#[test]
fn what_ignition_would_refuse_is_refused() {
    let file = |fields: Value| {
        let mut file = json!({"path": "/etc/x"});
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        json!({"storage": {"files": [file]}})
    };
    let bad = [
        file(json!({"path": "etc/x"})),
        file(json!({"path": "/etc//x"})),
        file(json!({"path": "/etc/../x"})),
        file(json!({"mode": 1644})),
        file(json!({"mode": 99999})),
        file(json!({"overwrite": true})),
        file(json!({"user": {"id": 1, "name": "a"}})),
        file(json!({"contents": {"source": "ftp://x"}})),
        file(json!({"contents": {"source": "data:;base64,!"}})),
        file(json!({"contents": {"source": "data:,plain", "compression": "gzip"}})),
        file(json!({"contents": {"source": "data:,x", "compression": "xz"}})),
        file(json!({"contents": {"source": "https://x", "verification": {"hash": "sha256-12"}}})),
        file(json!({"contents": {"verification": {"hash": format!("sha256-{}", "0".repeat(64))}}})),
        file(json!({"contents": {"source": "data:,x", "httpHeaders": [{"name": "a", "value": "b"}]}})),
        json!({"storage": {"files": [{"path": "/a"}, {"path": "/a"}]}}),
        json!({"storage": {"files": [{"path": "/a"}, {"path": "/a/b"}]}}),
        json!({"storage": {"links": [{"path": "/a"}]}}),
        json!({"storage": {"disks": [{"device": "sdb"}]}}),
        json!({"storage": {"disks": [{"device": "/dev/sdb", "partitions": [{"number": 0}]}]}}),
        json!({"storage": {"disks": [{"device": "/dev/sdb", "partitions": [
            {"number": 1, "startMiB": 1, "sizeMiB": 10}, {"number": 2, "startMiB": 10, "sizeMiB": 10}]}]}}),
        json!({"storage": {"filesystems": [{"device": "/dev/sdb", "format": "ntfs"}]}}),
        json!({"storage": {"filesystems": [{"device": "/dev/sdb", "path": "/x"}]}}),
        json!({"storage": {"raid": [{"name": "a", "level": "raid9", "devices": ["/dev/sdb"]}]}}),
        json!({"storage": {"luks": [{"name": "a/b", "device": "/dev/sdb"}]}}),
        json!({"systemd": {"units": [{"name": "nothing"}]}}),
        json!({"systemd": {"units": [{"name": "a.service"}, {"name": "a.service"}]}}),
        json!({"systemd": {"units": [{"name": "a.service", "contents": "Nice=5\n"}]}}),
        json!({"systemd": {"units": [{"name": "a.service", "contents": "[Service\n"}]}}),
        json!({"systemd": {"units": [{"name": "a.service", "enabled": true, "contents": "[Service]\nNice=5\n"}]}}),
        json!({"systemd": {"units": [{"name": "a.service", "dropins": [{"name": "x"}]}]}}),
        json!({"passwd": {"users": [{"name": "a"}, {"name": "a"}]}}),
        json!({"passwd": {"groups": [{"name": "a"}, {"name": "a"}]}}),
        json!({"kernelArguments": {"shouldExist": ["a"], "shouldNotExist": ["a"]}}),
    ];
    for parts in bad {
        let refused = check(&document(parts.clone()));
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{parts}: {refused:?}");
    }
}
