//! Runs in the live view.

use super::options::{self, OutputOptions, RunOptions};
use super::{CliError, FAILED, Global, headless, setup, target};
use crate::app::{self, AppOptions, BackendAvailability, Request, StartChoice};
use crate::backends::Backend;
use crate::devices::{AdbServer, watch};
use crate::event::{Event, Failure, LOCAL_DEVICE, Record, RunPlan, RunStatus, Stage};
use crate::probes::HostProbe;
use crate::report::text_report;
use crate::run::{Conductor, Order, RunRequest};
use crate::session::Source;
use crate::store::Store;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Records queued for the view.
const VIEW_CAPACITY: usize = 4096;

/// Time a child may take to end before a message appears.
const QUIET: Duration = Duration::from_secs(1);

/// Opens the live view, with runs already requested or on the start screen.
pub fn live(
    start: Option<(StartChoice, Vec<RunRequest>)>,
    run_options: &RunOptions,
    output: &OutputOptions,
    global: &Global,
) -> Result<u8, CliError> {
    setup::block_on(session(start, run_options, output, global))?
}

/// The view's theme and keys.
pub fn looks(global: &Global) -> AppOptions {
    AppOptions {
        theme: global.theme.clone(),
        ascii: global.ascii,
        themes_dir: app::default_keymap_path().and_then(|path| Some(path.parent()?.join("themes"))),
        keymap_file: app::default_keymap_path().filter(|path| path.exists()),
        ..AppOptions::default()
    }
}

async fn session(
    start: Option<(StartChoice, Vec<RunRequest>)>,
    run_options: &RunOptions,
    output: &OutputOptions,
    global: &Global,
) -> Result<u8, CliError> {
    let (mut hub, source) = setup::open_session(output).await?;
    let (records, mut view) = mpsc::channel::<Record>(VIEW_CAPACITY);
    let (requests, mut asked) = mpsc::channel::<Request>(16);
    let (orders, ordered) = mpsc::channel::<Order>(16);
    let app_options = AppOptions {
        start: start.as_ref().map(|(choice, _)| choice.clone()),
        recent_models: recent::read(),
        backends: availability(global),
        ..looks(global)
    };
    let mut desk = Desk {
        options: run_options.clone(),
        global: global.clone(),
        source: source.clone(),
        orders,
        models: BTreeMap::new(),
        last: BTreeMap::new(),
    };
    let probe = HostProbe::start(source.clone());
    let devices = AdbServer::locate(global.adb_server.as_deref())?;
    // A run on this machine needs no adb server, but a running server is used.
    let start_server = start.as_ref().is_none_or(|(_, runs)| runs.iter().any(|run| run.plan.device != LOCAL_DEVICE));
    let watcher = tokio::spawn(watch(devices, source.clone(), start_server));
    let (end, mut over) = oneshot::channel::<()>();
    let pump = tokio::spawn(async move {
        // The session outlives the view and is recorded to its end.
        loop {
            tokio::select! {
                biased;
                // Does not wait for the last source, which may be in a thread waiting for a device.
                _ = &mut over => break,
                record = hub.next() => match record {
                    Some(record) => { let _ = records.send(record).await; }
                    None => break,
                },
            }
        }
        for record in hub.close() {
            let _ = records.send(record).await;
        }
        hub
    });
    let mut conductor = tokio::spawn(Conductor::new(source, run_options.limits()).serve(ordered));
    if let Some((choice, runs)) = start {
        recent::remember(&choice.model);
        desk.note(&runs);
        desk.send(Order::Run(runs)).await;
    }
    let serve = async {
        while let Some(request) = asked.recv().await {
            if desk.serve(request).await {
                break;
            }
        }
        desk
    };
    let (mut store, desk) = tokio::join!(app::run(app_options, Store::new(), &mut view, requests), serve);
    // Closing the orders makes the conductor stop the current runs and then end.
    drop(desk);
    let leave = async {
        watcher.abort();
        let _ = watcher.await;
        leave(&mut conductor).await;
        drop(probe);
        let _ = end.send(());
    };
    // Until then this stands in for the view.
    let rest = async {
        while let Some(record) = view.recv().await {
            if let Ok(store) = &mut store {
                store.apply(&record);
            }
        }
    };
    tokio::join!(leave, rest);
    let mut hub = pump.await;
    if let Ok(hub) = &mut hub {
        setup::close_session(hub, store.as_ref().ok());
    }
    let store = store?;
    let printed = if store.runs().is_empty() { Ok(()) } else { headless::print(&text_report(&store)) };
    if let Ok(mut hub) = hub
        && let Some(error) = hub.take_record_error()
    {
        super::say(CliError::from(error).render().trim_end());
        return printed.and(Ok(FAILED));
    }
    printed?;
    Ok(headless::exit_status(&store))
}

/// Waits until the current run has stopped cleanly, unless the user does not want to wait.
async fn leave(conductor: &mut JoinHandle<()>) {
    let patience = async {
        tokio::time::sleep(QUIET).await;
        super::say("stopping the run; Ctrl-C ends it at once");
        if setup::insistence().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        _ = &mut *conductor => return,
        () = patience => {}
    }
    // Dropping the run kills the runner.
    conductor.abort();
    let _ = conductor.await;
}

/// Turns requests from the view into orders.
struct Desk {
    options: RunOptions,
    global: Global,
    source: Source,
    orders: mpsc::Sender<Order>,
    /// The last requested model per device.
    models: BTreeMap<String, PathBuf>,
    /// The last order per device.
    last: BTreeMap<String, Vec<RunRequest>>,
}

impl Desk {
    /// Executes a request; returns true if it was the last.
    async fn serve(&mut self, request: Request) -> bool {
        match request {
            Request::Start { device, model, backends } => {
                recent::remember(&model);
                self.models.insert(device.clone(), model.clone());
                self.start(&device, &model, &backends).await;
            }
            Request::Stop(device) => self.send(Order::Stop(device)).await,
            Request::Restart(device) => {
                let runs = self.last.get(&device).cloned().unwrap_or_default();
                self.send(Order::Replace(runs)).await;
            }
            Request::Switch { device, backend } => {
                if let Some(model) = self.models.get(&device).cloned() {
                    self.start(&device, &model, &[backend]).await;
                }
            }
            Request::Quit => return true,
        }
        false
    }

    async fn start(&mut self, device: &str, model: &Path, backends: &[Backend]) {
        let options = RunOptions { backend: backends.to_vec(), ..self.options.clone() };
        let requests = match target::site(device, &options, &self.global).await {
            Ok(site) => options.requests(&[model.to_owned()], &site, &self.global),
            Err(error) => Err(error),
        };
        match requests {
            Ok(requests) => {
                self.note(&requests);
                self.send(Order::Replace(requests)).await;
            }
            Err(error) => self.refuse(device, model, backends, &error).await,
        }
    }

    /// Remembers the orders per device.
    fn note(&mut self, requests: &[RunRequest]) {
        for request in requests {
            self.last.remove(&request.plan.device);
            self.models.entry(request.plan.device.clone()).or_insert_with(|| request.task.model.clone());
        }
        for request in requests {
            self.last.entry(request.plan.device.clone()).or_default().push(request.clone());
        }
    }

    async fn send(&self, order: Order) {
        // Only fails if the conductor is gone, at the end.
        let _ = self.orders.send(order).await;
    }

    /// Shows a run that cannot even be requested as failed, with what to do next.
    async fn refuse(&self, device: &str, model: &Path, backends: &[Backend], error: &CliError) {
        let run = Some(self.source.new_run());
        let plan = RunPlan {
            device: device.to_owned(),
            backend: backends.first().copied().unwrap_or(Backend::Cpu),
            model: crate::event::clean_text(&model.to_string_lossy()),
            warmup: 0,
            budget: crate::event::Budget::Iterations(0),
            profiling: self.options.profiling,
            profiling_budget: None,
            simulated: false,
            driver: crate::event::Driver::default(),
            energy_while_charging: false,
            mode: crate::event::Mode::default(),
            constraints: crate::event::Constraints::default(),
        };
        let failure = Failure {
            hint: error.hint(),
            missing: error.exit_status() == super::MISSING,
            bad_input: error.exit_status() == super::BAD_INPUT,
            ..Failure::new(Stage::Prepare, "prepare", &error.to_string())
        };
        self.source.send(run, Event::RunStarted(Box::new(plan))).await;
        self.source.send(run, Event::Failed(Box::new(failure))).await;
        self.source.send(run, Event::RunFinished { status: RunStatus::Failed }).await;
    }
}

/// The backends of the runtime, judging by its files: a library that exists may still fail to load, which a
/// run then shows.
fn availability(global: &Global) -> Vec<BackendAvailability> {
    let runtime = options::runtime(global);
    Backend::ALL
        .into_iter()
        .map(|backend| {
            let available = match &runtime {
                Ok(runtime) if runtime.library(backend.name()).is_some() => Ok(()),
                Ok(_) => Err(format!("this runtime has no {}", backend.library())),
                Err(error) => Err(error.to_string()),
            };
            BackendAvailability { backend, available }
        })
        .collect()
}

/// Models of earlier sessions, newest first, one path per line.
mod recent {
    use crate::backends::runtime::Env;
    use crate::files::{read_text_at_most, write_whole};
    use std::path::{Path, PathBuf};

    const KEEP: usize = 12;
    /// Maximum size of the list, bytes.
    const RECENT_BYTES: u64 = 1 << 20;

    fn file() -> Option<PathBuf> {
        Env::from_process().data_dir.map(|dir| dir.join("recent-models"))
    }

    /// The models that still exist.
    pub fn read() -> Vec<PathBuf> {
        let text = file().and_then(|path| read_text_at_most(&path, RECENT_BYTES).ok()).unwrap_or_default();
        text.lines().map(PathBuf::from).filter(|path| path.exists()).take(KEEP).collect()
    }

    /// Moves a model to the front. Losing the list is not an error.
    pub fn remember(model: &Path) {
        let (Some(file), Ok(model)) = (file(), std::path::absolute(model)) else { return };
        let Some(name) = model.to_str().filter(|name| !name.contains('\n')) else { return };
        let mut lines = vec![name.to_owned()];
        lines.extend(read().iter().filter(|old| **old != model).filter_map(|old| old.to_str().map(ToOwned::to_owned)));
        lines.truncate(KEEP);
        let Some(folder) = file.parent() else { return };
        let text = lines.join("\n") + "\n";
        let _ = std::fs::create_dir_all(folder).and_then(|()| write_whole(&file, text.as_bytes()));
    }
}
