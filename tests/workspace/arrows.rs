//! Arrows between crates point one way.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

const PREFIX: &str = "scarpenter-";
const PROVIDERS: &str = "provider-";

/// What a crate may use of ours; `None` for a crate that the table does not know.
///
/// A new arrow is a change of the design: it is made here and reviewed as one.
fn allowed(krate: &str) -> Option<Vec<&'static str>> {
    const LEAVES: [&str; 7] = ["planner", "emission", "api", "catalog", "bootstrap", "headscale", "provider"];
    let with_core = |more: &[&'static str]| Some([&["core"], more].concat());
    match krate {
        "core" => Some(vec![]),
        "planner" | "emission" | "api" | "catalog" | "bootstrap" | "headscale" | "provider"
        | "playground" => with_core(&[]),
        "hollow" => with_core(&["bootstrap"]),
        "index" => with_core(&["api"]),
        "controller" => with_core(&[LEAVES.as_slice(), &["index"]].concat()),
        "cli" => {
            let own = ["hollow", "index", "controller", "playground", "provider-sim", "provider-local"];
            with_core(&[LEAVES.as_slice(), &own].concat())
        }
        "testkit" => {
            let own = ["hollow", "index", "controller", "playground", "cli"];
            with_core(&[LEAVES.as_slice(), &own].concat())
        }
        "provider-sim" => with_core(&["provider", "hollow"]),
        other if other.starts_with(PROVIDERS) => with_core(&["provider"]),
        _ => None,
    }
}

/// Crates that must not be reached by normal dependencies, however far.
const NEVER: &[(&str, &[&str])] = &[
    ("core", &["kube", "kube-client", "k8s-openapi", "tonic", "tokio", "futures-util", "rand", "hyper"]),
    ("planner", &["kube", "kube-client", "k8s-openapi", "tonic", "tokio", "futures-util", "rand", "hyper"]),
    ("emission", &["kube", "kube-client", "k8s-openapi", "tonic", "tokio", "futures-util", "rand", "hyper"]),
    ("catalog", &["kube", "kube-client", "k8s-openapi", "tonic"]),
    ("bootstrap", &["kube", "kube-client", "tonic", "tokio", "hyper", "reqwest"]),
    ("headscale", &["kube", "kube-client", "k8s-openapi"]),
    ("provider", &["kube", "kube-client", "k8s-openapi"]),
];

struct Graph {
    metadata: Metadata,
}

impl Graph {
    /// The table is the same on every platform, so one is enough and nothing for others is downloaded.
    fn read() -> Self {
        let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"].map(str::to_owned);
        let metadata = MetadataCommand::new().other_options(platform).exec().expect("cargo metadata runs");
        Self { metadata }
    }

    fn ours(&self) -> BTreeMap<String, &Package> {
        let packages = self.metadata.workspace_packages();
        packages.into_iter().map(|package| (short(&package.name), package)).collect()
    }

    /// Names of all that `package` reaches by normal dependencies; edges into `barred` are not followed.
    fn reached(&self, package: &PackageId, barred: &[&str]) -> BTreeSet<String> {
        let resolve = self.metadata.resolve.as_ref().expect("cargo metadata resolves");
        let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
        let (mut todo, mut seen) = (vec![package], BTreeSet::new());
        while let Some(id) = todo.pop() {
            for edge in &nodes[id].deps {
                let normal = edge.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
                let name = self.metadata[&edge.pkg].name.to_string();
                if normal && !barred.contains(&name.as_str()) && seen.insert(name) {
                    todo.push(&edge.pkg);
                }
            }
        }
        seen
    }
}

fn short(name: &str) -> String {
    name.strip_prefix(PREFIX).unwrap_or(name).to_owned()
}

/// Dependencies of a package on crates of ours, by kind.
fn uses(package: &Package, kinds: &[DependencyKind]) -> Vec<String> {
    let ours = package.dependencies.iter().filter(|dependency| dependency.name.starts_with(PREFIX));
    ours.filter(|dependency| kinds.contains(&dependency.kind))
        .map(|dependency| short(&dependency.name))
        .collect()
}

#[test]
fn every_crate_uses_only_what_the_table_allows() {
    let graph = Graph::read();
    let mut wrong = Vec::new();
    for (name, package) in graph.ours() {
        if name == "tests" {
            continue;
        }
        let Some(allowed) = allowed(&name) else {
            wrong.push(format!("{name} is not in the table"));
            continue;
        };
        for used in uses(package, &[DependencyKind::Normal, DependencyKind::Build]) {
            if !allowed.contains(&used.as_str()) {
                wrong.push(format!("{name} uses {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_uses_tests_and_only_tests_use_testkit() {
    for (name, package) in Graph::read().ours() {
        let every = [DependencyKind::Normal, DependencyKind::Development, DependencyKind::Build];
        assert!(!uses(package, &every).contains(&"tests".to_owned()), "{name} uses tests");
        if name != "tests" {
            let shipped = uses(package, &[DependencyKind::Normal, DependencyKind::Build]);
            assert!(!shipped.contains(&"testkit".to_owned()), "{name} ships testkit");
        }
        if ["core", "planner"].contains(&name.as_str()) {
            let tested = uses(package, &[DependencyKind::Development]);
            assert!(!tested.contains(&"testkit".to_owned()), "{name} would be compiled twice");
        }
    }
}

#[test]
fn no_crate_reaches_what_it_must_never_hold() {
    let graph = Graph::read();
    let ours = graph.ours();
    for (name, never) in NEVER {
        let Some(package) = ours.get(*name) else { continue };
        let reached = graph.reached(&package.id, &[]);
        let wrong: Vec<_> = never.iter().filter(|never| reached.contains(**never)).collect();
        assert!(wrong.is_empty(), "{name} reaches {wrong:?}");
    }
}

#[test]
fn a_provider_reaches_kubernetes_through_hollow_alone_and_never_another_provider() {
    let graph = Graph::read();
    let ours = graph.ours();
    let providers = ours.iter().filter(|(name, _)| name.starts_with(PROVIDERS));
    for (name, package) in providers {
        let reached = graph.reached(&package.id, &["scarpenter-hollow"]);
        assert!(!reached.contains("kube-client"), "{name} reaches kube");
        let other = reached.iter().find(|other| short(other).starts_with(PROVIDERS));
        assert_eq!(other, None, "{name} reaches another provider");
    }
}

#[test]
fn the_table_is_read_from_a_graph_that_has_kube_in_it() {
    let graph = Graph::read();
    let controller = graph.ours()["controller"];
    let reached = graph.reached(&controller.id, &[]);
    assert!(reached.contains("kube-client") && reached.contains("scarpenter-core"), "{reached:?}");
}
