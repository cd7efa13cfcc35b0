//! Node classes: whether machines can join, and of which vendors; the answer is on the class within seconds.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Config, ResourceExt};
use scarpenter_api::condition::{self, Look, Status};
use scarpenter_api::{Condition, ScarpenterNodeClass, reason};
use scarpenter_core::label;
use scarpenter_core::name::Vendor;
use scarpenter_provider::Image;
use scarpenter_provider::request::{ClassCheck, PlacedImage, Severity};
use serde_json::json;

use crate::clock;
use crate::context::{ClassState, Context};
use crate::provisioner::chain;
use crate::vendors::Slot;
use crate::{join, mesh};

/// Classes are looked at again after this long, besides by events.
const AGAIN: Duration = Duration::from_secs(10);
/// A join that works is tested again after this long.
const GOOD_FOR: Duration = Duration::from_secs(600);
/// A vendor's answer that a class can be used holds for this long.
const CHECK_GOOD_FOR: Duration = Duration::from_secs(60);
/// One that it cannot: whoever mends it is waiting. A plugin that does not answer is not asked at every event either.
const CHECK_BAD_FOR: Duration = Duration::from_secs(5);

/// A class that nobody uses is let go of after this long, so that machines that come one after another do not cost two
/// writes of the class each.
const LET_GO_AFTER: Duration = Duration::from_secs(60);
/// One that is being deleted, after this long: a claim for which it was held may be about to be written.
const LET_GO_OF_DELETED_AFTER: Duration = Duration::from_secs(5);

/// Remembers what was tested.
#[derive(Default)]
struct Memory {
    join: Option<(Result<(), String>, Instant)>,
    vendors: HashMap<(String, i64, Vendor), (Verdict, Instant)>,
}

type Verdict = (Status, &'static str, String);

/// Looks at all classes for ever.
pub(crate) async fn run(context: Arc<Context>, config: Config) {
    let mut memory = Memory::default();
    loop {
        let classes: Vec<_> = context.view().classes().cloned().collect();
        forget(&context, &classes);
        for class in classes {
            if let Err(error) = look(&context, &config, &mut memory, &class).await {
                tracing::warn!(class = class.name_any(), error = %chain(&error), "class not written");
            }
        }
        let _ = tokio::time::timeout(AGAIN, context.wake.classes.notified()).await;
    }
}

/// A class that is gone is no longer usable.
fn forget(context: &Context, classes: &[Arc<ScarpenterNodeClass>]) {
    let mut states = context.classes.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = |name: &String| classes.iter().any(|class| class.name_any() == *name);
    states.retain(|name, _| is_there(name));
    context.class_uses().retain(|name, _| is_there(name));
}

async fn look(
    context: &Context,
    config: &Config,
    memory: &mut Memory,
    class: &ScarpenterNodeClass,
) -> Result<(), kube::Error> {
    finalize(context, class).await?;
    let look = Look { generation: class.metadata.generation, now: Timestamp::now() };
    let mut conditions = class.conditions().to_vec();
    let (status, word, words) = join_ready(context, config, memory, class).await;
    set(&mut conditions, look, condition::JOIN_READY, status, word, &words);
    let (status, word, words) = context.catalog.verdict();
    condition::set(&mut conditions, look, condition::CATALOG_READY, status, word, &words);
    mesh_ready(context, class, &mut conditions, look);
    let mut verdicts = BTreeMap::new();
    let vendors: Vec<&str> = class.spec.vendors.keys().map(String::as_str).collect();
    for vendor in &vendors {
        let verdict = vendor_ready(context, memory, class, &Vendor::new(*vendor)).await;
        set(&mut conditions, look, &condition::vendor_ready(vendor), verdict.0, verdict.1, &verdict.2);
        verdicts.insert(Vendor::new(*vendor), (verdict.0 != Status::True).then_some(verdict.2));
    }
    conditions.retain(|own| !own.type_.ends_with("Ready") || is_current(&own.type_, &vendors));
    let created = class.creation_timestamp().map_or(look.now, |at| at.0);
    condition::complete_class(&mut conditions, look, created, class.spec.mesh.is_some(), &vendors);
    remember(context, class, &conditions, verdicts);
    write(context, class, conditions).await
}

fn is_current(type_: &str, vendors: &[&str]) -> bool {
    [condition::READY, condition::JOIN_READY, condition::MESH_READY, condition::CATALOG_READY]
        .contains(&type_)
        || vendors.iter().any(|vendor| condition::vendor_ready(vendor) == type_)
}

fn set(list: &mut Vec<Condition>, look: Look, type_: &str, status: Status, word: &str, words: &str) {
    if status == Status::True {
        condition::set_true(list, look, type_);
    } else {
        condition::set(list, look, type_, status, word, words);
    }
}

async fn join_ready(
    context: &Context,
    config: &Config,
    memory: &mut Memory,
    class: &ScarpenterNodeClass,
) -> Verdict {
    let problems = class.problems();
    if !problems.is_empty() {
        return (Status::False, reason::INVALID, problems.join("; "));
    }
    // Any vendor will do: what is wrong with a document is wrong with those of all.
    let vendor = Vendor::new(class.spec.vendors.keys().next().map_or("", String::as_str));
    if let Err(error) = join::probe(context, class, &vendor).await {
        return (Status::False, reason::JOIN_NOT_POSSIBLE, chain(&error));
    }
    let fresh = memory.join.as_ref().filter(|(outcome, at)| outcome.is_ok() && at.elapsed() < GOOD_FOR);
    let outcome = match fresh {
        Some((outcome, _)) => outcome.clone(),
        None => {
            let outcome = join::self_test(context, config).await;
            memory.join = Some((outcome.clone(), Instant::now()));
            outcome
        }
    };
    match outcome {
        Ok(()) => (Status::True, condition::JOIN_READY, String::new()),
        Err(words) => (Status::False, reason::JOIN_NOT_POSSIBLE, words),
    }
}

/// What was found out lately, apart from this loop; as long as nothing was, the condition stays what it is.
fn mesh_ready(context: &Context, class: &ScarpenterNodeClass, conditions: &mut Vec<Condition>, look: Look) {
    if class.spec.mesh.is_none() {
        condition::remove(conditions, condition::MESH_READY);
    } else if let Some((status, word, words)) = mesh::verdict(context, class) {
        set(conditions, look, condition::MESH_READY, status, word, &words);
    }
}

async fn vendor_ready(
    context: &Context,
    memory: &mut Memory,
    class: &ScarpenterNodeClass,
    vendor: &Vendor,
) -> Verdict {
    if let Some(problems) = class.vendor_problems().get(vendor.as_str()) {
        return (Status::False, reason::INVALID, problems.join("; "));
    }
    let Some(slot) = context.vendors.get(vendor) else {
        let words = format!("the controller was started without --provider {vendor}=…");
        return (Status::False, reason::NO_PROVIDER, words);
    };
    if let Some(problem) = slot.problem() {
        return (Status::False, reason::PROVIDER_UNAVAILABLE, problem);
    }
    if let Some(words) = too_large(context, class, slot, vendor).await {
        return (Status::False, reason::USER_DATA_TOO_LARGE, words);
    }
    if let Some(words) = context.stock().denial(vendor, clock::now()) {
        return (Status::False, reason::UNAUTHENTICATED, words);
    }
    let key = (class.name_any(), class.metadata.generation.unwrap_or(0), vendor.clone());
    if let Some((verdict, at)) = memory.vendors.get(&key)
        && at.elapsed() < if verdict.0 == Status::True { CHECK_GOOD_FOR } else { CHECK_BAD_FOR }
    {
        return verdict.clone();
    }
    let verdict = match slot.client.validate(check(context, class, vendor)).await {
        Ok(problems) => {
            let errors: Vec<String> = problems
                .into_iter()
                .filter(|problem| problem.severity == Severity::Error)
                .map(|problem| format!("{}: {}", problem.field, problem.message))
                .collect();
            if errors.is_empty() {
                (Status::True, condition::READY, String::new())
            } else {
                (Status::False, reason::VALIDATION_FAILED, errors.join("; "))
            }
        }
        Err(scarpenter_provider::Error::Unimplemented { .. }) => {
            (Status::True, condition::READY, String::new())
        }
        Err(error @ scarpenter_provider::Error::Denied { .. }) => {
            (Status::False, reason::UNAUTHENTICATED, error.to_string())
        }
        Err(error) => (Status::False, reason::PROVIDER_UNAVAILABLE, error.to_string()),
    };
    memory.vendors.retain(|(name, _, other), _| *name != key.0 || *other != key.2);
    memory.vendors.insert(key, (verdict.clone(), Instant::now()));
    verdict
}

/// Whether documents of the class are more than the vendor takes; where there can be none, the class says so.
async fn too_large(
    context: &Context,
    class: &ScarpenterNodeClass,
    slot: &Slot,
    vendor: &Vendor,
) -> Option<String> {
    let limit = slot.capabilities()?.user_data_limit;
    let size = join::probe(context, class, vendor).await.ok().filter(|size| !limit.takes(*size))?;
    let (counted, most) = (limit.counted(size), limit.bytes);
    Some(format!(
        "machines would get Ignition documents of about {counted} bytes, and {vendor} takes {most}: shorten what spec.ignition names, or the CA bundle"
    ))
}

fn check(context: &Context, class: &ScarpenterNodeClass, vendor: &Vendor) -> ClassCheck {
    let spec = class.spec.vendors.get(vendor.as_str());
    let channel = class.spec.image.flatcar.channel.as_str().to_owned();
    let mut images = vec![PlacedImage { region: None, arch: None, image: Image::Flatcar(channel) }];
    for (place, id) in &class.spec.image.ids {
        let mut parts = place.split('/');
        if parts.next() == Some(vendor.as_str()) {
            images.push(PlacedImage {
                region: parts.next().map(str::to_owned),
                arch: None,
                image: Image::Id(id.clone()),
            });
        }
    }
    ClassCheck {
        cluster: context.cluster.to_string(),
        node_class: class.name_any(),
        regions: spec.map(|spec| spec.regions.clone()).unwrap_or_default(),
        images,
        settings: spec.map(|spec| spec.settings.clone().into_iter().collect()).unwrap_or_default(),
        boot_disk_gib: u32::try_from(class.spec.boot_disk.size_gib).ok(),
    }
}

/// What the provisioner reads. It wakes when something became usable.
fn remember(
    context: &Context,
    class: &ScarpenterNodeClass,
    conditions: &[Condition],
    vendors: BTreeMap<Vendor, Option<String>>,
) {
    let ready = condition::find(conditions, condition::READY);
    let state = ClassState {
        ready: condition::is_true(conditions, condition::READY),
        vendors,
        why: ready.map(|ready| ready.message.clone()).unwrap_or_default(),
    };
    let mut states = context.classes.lock().unwrap_or_else(PoisonError::into_inner);
    if states.insert(class.name_any(), state.clone()).as_ref() != Some(&state) {
        context.wake.pods.notify_one();
        context.wake.pools.notify_one();
    }
}

async fn write(
    context: &Context,
    class: &ScarpenterNodeClass,
    conditions: Vec<Condition>,
) -> Result<(), kube::Error> {
    if conditions == class.conditions() {
        return Ok(());
    }
    let patch = json!({"metadata": {"resourceVersion": class.resource_version()}, "status": {"conditions": conditions}});
    let api = Api::<ScarpenterNodeClass>::all(context.client.clone());
    match api.patch_status(&class.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(written) => {
            context.view().apply_class(Arc::new(written));
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// A class is held while claims use it, since what it says is needed to take their machines down.
async fn finalize(context: &Context, class: &ScarpenterNodeClass) -> Result<(), kube::Error> {
    let name = class.name_any();
    let used = context.view().claims().any(|record| record.object.spec.node_class_ref.name == name);
    if used {
        context.class_uses().insert(name.clone(), Instant::now());
    }
    let going = class.metadata.deletion_timestamp.is_some();
    let after = if going { LET_GO_OF_DELETED_AFTER } else { LET_GO_AFTER };
    let rested = context.class_uses().get(&name).is_none_or(|at| at.elapsed() > after);
    if is_held(class) == used || going && !is_held(class) || !used && !rested {
        return Ok(());
    }
    match set_held(context, class, used).await {
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(()),
        outcome => outcome,
    }
}

/// Holds a class before the first claim of it is made: one that is deleted right after must wait for that claim.
pub(crate) async fn hold(context: &Context, name: &str) -> Result<(), kube::Error> {
    // Said first: the loop over the classes must not let go of it before the claim is there to be seen.
    context.class_uses().insert(name.to_owned(), Instant::now());
    if context.view().class(name).is_none_or(|class| is_held(class)) {
        return Ok(());
    }
    let api = Api::<ScarpenterNodeClass>::all(context.client.clone());
    match set_held(context, &api.get(name).await?, true).await {
        // Its status changes often at the start.
        Err(kube::Error::Api(status)) if status.is_conflict() => {
            set_held(context, &api.get(name).await?, true).await
        }
        outcome => outcome,
    }
}

fn is_held(class: &ScarpenterNodeClass) -> bool {
    class.finalizers().iter().any(|finalizer| finalizer == label::FINALIZER)
}

async fn set_held(context: &Context, class: &ScarpenterNodeClass, held: bool) -> Result<(), kube::Error> {
    let mut finalizers = class.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != label::FINALIZER);
    if held {
        finalizers.push(label::FINALIZER.to_owned());
    }
    let patch = json!({"metadata": {"resourceVersion": class.resource_version(), "finalizers": finalizers}});
    let api = Api::<ScarpenterNodeClass>::all(context.client.clone());
    let written = api.patch(&class.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    // One that goes may be gone by now, and must not come back.
    if written.metadata.deletion_timestamp.is_none() {
        context.view().apply_class(Arc::new(written));
    }
    Ok(())
}
