//! The plugin as a process that is killed and started again, and a host that is full.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Host, Plugin, create, find, processes};
use scarpenter_provider::error::RefusalReason;
use scarpenter_provider::request::{ClassCheck, PlacedImage};
use scarpenter_provider::{Client, CreateMachine, Created, Image, Machine, MachineState};

async fn make(plugin: &Plugin, create: CreateMachine) -> Machine {
    match plugin.client.create_machine(create).await.unwrap() {
        Created::Machine(machine) => machine,
        Created::Refused(refusal) => panic!("{}", refusal.message),
    }
}

async fn state(client: &Client, create: &CreateMachine) -> Option<MachineState> {
    client.get_machine(find(create)).await.unwrap().map(|machine| machine.state)
}

#[tokio::test]
async fn machines_outlive_a_kill_of_the_plugin_and_are_adopted() {
    let host = Host::new();
    let plugin = host.start(&["--cpus", "2"]).await;
    let (one, two) = (create("one"), create("two"));
    let made = make(&plugin, one.clone()).await;
    let other = make(&plugin, two.clone()).await;
    assert_ne!(made.addresses, other.addresses, "each has an address of its own");
    assert_eq!(host.processes().len(), 2);
    plugin.kill();
    let ids = host.processes();
    assert_eq!(ids.len(), 2, "they live on");

    let plugin = host.start(&[]).await;
    let adopted = plugin.client.get_machine(find(&one)).await.unwrap().unwrap();
    assert_eq!(adopted, made);
    assert_eq!(make(&plugin, one.clone()).await, made, "the retry of its create finds it");
    assert_eq!(host.processes(), ids);
    let console = plugin.client.console_output(find(&one)).await.unwrap();
    assert_eq!(console.as_deref(), Some("booting\n"));
    plugin.delete_until_gone(&one).await;
    plugin.delete_until_gone(&two).await;
    assert!(host.processes().is_empty());
    assert_eq!(std::fs::read_dir(host.machines()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_machine_that_ended_counts_as_stopped_and_its_id_is_never_killed_for_it() {
    let host = Host::new();
    let plugin = host.start(&[]).await;
    let create = create("a");
    make(&plugin, create.clone()).await;
    let pid = rustix::process::Pid::from_raw(host.processes()[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    while state(&plugin.client, &create).await == Some(MachineState::Running) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(state(&plugin.client, &create).await, Some(MachineState::Stopped));
    plugin.kill();
    // Now the id belongs to somebody else.
    let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
    let file = host.machines().join("a/machine.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["process"]["pid"] = other.id().into();
    std::fs::write(&file, record.to_string()).unwrap();
    std::fs::write(host.machines().join("a/pid"), other.id().to_string()).unwrap();
    let plugin = host.start(&[]).await;
    assert_eq!(state(&plugin.client, &create).await, Some(MachineState::Stopped));
    plugin.delete_until_gone(&create).await;
    let lives = other.try_wait().unwrap().is_none();
    other.kill().unwrap();
    other.wait().unwrap();
    assert!(lives, "somebody else's process was killed");
}

#[tokio::test]
async fn what_was_half_made_or_half_removed_goes_at_the_next_start() {
    let host = Host::new();
    let plugin = host.start(&["--cpus", "8"]).await;
    for claim in ["making", "going", "broken", "made"] {
        make(&plugin, create(claim)).await;
    }
    plugin.kill();
    for claim in ["making", "going"] {
        let file = host.machines().join(claim).join("machine.json");
        let text = std::fs::read_to_string(&file).unwrap().replace("\"made\"", &format!("{claim:?}"));
        std::fs::write(&file, text).unwrap();
    }
    std::fs::remove_file(host.machines().join("broken/machine.json")).unwrap();
    let plugin = host.start(&["--cpus", "8"]).await;
    let list = plugin.client.list_machines(&"cluster".into()).await.unwrap();
    let claims: Vec<String> = list.machines.iter().map(|machine| machine.claim.to_string()).collect();
    assert_eq!(claims, ["made"]);
    assert_eq!(host.processes().len(), 1);
    assert_eq!(std::fs::read_dir(host.machines()).unwrap().count(), 1);
    plugin.delete_until_gone(&create("made")).await;
}

#[tokio::test]
async fn a_machine_whose_folder_somebody_removed_still_ends() {
    let host = Host::new();
    let plugin = host.start(&[]).await;
    let create = create("a");
    make(&plugin, create.clone()).await;
    std::fs::remove_dir_all(host.machines().join("a")).unwrap();
    plugin.delete_until_gone(&create).await;
    assert!(host.processes().is_empty());
}

#[tokio::test]
async fn user_data_is_in_no_argument_and_in_no_file_once_it_runs() {
    let host = Host::new();
    let plugin = host.start(&[]).await;
    let create = create("a");
    make(&plugin, create.clone()).await;
    for pid in host.processes() {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains("a-token"));
    }
    for entry in std::fs::read_dir(host.machines().join("a")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert!(
                !String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("a-token"),
                "{}",
                path.display()
            );
        }
    }
    plugin.delete_until_gone(&create).await;
}

#[tokio::test]
async fn beyond_the_host_it_is_sold_out_and_the_list_says_so() {
    let host = Host::new();
    let plugin = host.start(&["--cpus", "2", "--memory", "4096"]).await;
    let available = async || -> Vec<String> {
        let live = plugin.client.list_offerings(Vec::new()).await.unwrap();
        assert!(
            live.offerings.iter().all(|offering| offering.price.is_some_and(|price| price.micro_usd() == 0))
        );
        assert_eq!(live.offerings.len(), live.instance_types.len());
        live.offerings
            .into_iter()
            .filter(|offering| offering.available)
            .map(|offering| offering.instance_type)
            .collect()
    };
    assert_eq!(available().await, ["local.small", "local.medium"]);
    make(&plugin, create("a")).await;
    assert_eq!(available().await, ["local.small"]);
    make(&plugin, create("b")).await;
    let third = plugin.client.create_machine(create("c")).await.unwrap();
    let Created::Refused(refusal) = third else { panic!("{third:?}") };
    assert_eq!(refusal.reason, RefusalReason::SoldOut);
    assert!(refusal.message.contains("0 of 1 CPUs are free"), "{}", refusal.message);
    assert_eq!(state(&plugin.client, &create("c")).await, None);
    plugin.delete_until_gone(&create("a")).await;
    make(&plugin, create("c")).await;
    plugin.delete_until_gone(&create("b")).await;
    plugin.delete_until_gone(&create("c")).await;
}

#[tokio::test]
async fn a_machine_that_cannot_be_made_leaves_nothing() {
    let host = Host::new();
    let plugin = host.start(&[]).await;
    let refused = CreateMachine { name: "refused".to_owned(), ..create("a") };
    let error = plugin.client.create_machine(refused).await.unwrap_err();
    assert!(error.to_string().contains("no such machine"), "{error}");
    assert_eq!(std::fs::read_dir(host.machines()).unwrap().count(), 0);
    let unknown = CreateMachine { instance_type: "local.tiny".to_owned(), ..create("a") };
    let Created::Refused(refusal) = plugin.client.create_machine(unknown).await.unwrap() else {
        panic!("made")
    };
    assert_eq!(refusal.reason, RefusalReason::Invalid);
}

#[tokio::test]
async fn what_is_missing_is_said_of_the_class() {
    let host = Host::new();
    let plugin = host.start(&[]).await;
    let problems = |problems: Vec<scarpenter_provider::request::Problem>| -> String {
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("\n")
    };
    let class = || ClassCheck {
        cluster: "cluster".to_owned(),
        node_class: "default".to_owned(),
        ..ClassCheck::default()
    };
    let fine = plugin.client.validate(class()).await.unwrap();
    assert!(fine.is_empty(), "{fine:?}");
    let image = Image::Id("another".to_owned());
    let named = ClassCheck { images: vec![PlacedImage { region: None, arch: None, image }], ..class() };
    let words = problems(plugin.client.validate(named).await.unwrap());
    assert!(words.contains("another"), "{words}");
    std::fs::remove_file(host.path("image")).unwrap();
    std::fs::remove_file(host.path("qemu")).unwrap();
    let words = problems(plugin.client.validate(class()).await.unwrap());
    assert!(words.contains("build-image") && words.contains("apt-get install"), "{words}");
}

#[tokio::test]
async fn with_its_parent_everything_ends() {
    let host = Host::new();
    // The plugin is the child of a shell that is killed.
    let mut shell = Command::new("sh");
    let line = "trap '' TERM; \"$0\" \"$@\" & wait";
    shell.arg("-c").arg(line).arg(env!("CARGO_BIN_EXE_scarpenter-provider-local"));
    shell.arg("--listen").arg(format!("unix://{}", host.path("local.sock").display())).arg("--with-parent");
    for (name, file) in
        [("--image", "image"), ("--state", "state"), ("--qemu", "qemu"), ("--qemu-img", "qemu-img")]
    {
        shell.arg(name).arg(host.path(file));
    }
    let mut shell = shell.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let endpoint = scarpenter_provider::Endpoint::Unix(host.path("local.sock"));
    let client = Client::connect("local".into(), &endpoint).unwrap();
    let by = Instant::now() + Duration::from_secs(60);
    while client.capabilities().await.is_err() {
        assert!(Instant::now() < by);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.create_machine(create("a")).await.unwrap();
    assert_eq!(host.processes().len(), 1);
    shell.kill().unwrap();
    shell.wait().unwrap();
    while !processes(&host.path("")).is_empty() {
        assert!(Instant::now() < by, "it lives on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(std::fs::read_dir(host.machines()).unwrap().count(), 0);
}

#[tokio::test]
async fn extensions_are_served_and_nothing_beside_them() {
    use std::io::{Read, Write};
    let host = Host::new();
    std::fs::create_dir_all(host.path("extensions/folder")).unwrap();
    std::fs::write(host.path("extensions/kubernetes.raw"), "an extension").unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = format!("127.0.0.1:{port}");
    let folder = host.path("extensions");
    let _plugin = host.start(&["--extensions", folder.to_str().unwrap(), "--extensions-at", &at]).await;
    let get = |path: &str| {
        let mut stream = loop {
            if let Ok(stream) = std::net::TcpStream::connect(&at) {
                break stream;
            }
            std::thread::yield_now();
        };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("/kubernetes.raw");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("an extension"), "{answer}");
    for path in ["/", "/folder", "/none", "/..%2Fimage", "/.%2e/image", "/%2e%2e%2fimage"] {
        let answer = get(path);
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
}
