//! Schedules runs: each device has its own lane, and so does this machine. Runs in different lanes overlap,
//! those in the same lane run one after another.

use super::cool_down::HeatWatch;
use super::lane::{Lane, LaneOrder};
use super::request::RunRequest;
use crate::backends::local::Limits;
use crate::session::Source;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};

/// An order to the conductor.
#[derive(Debug)]
pub enum Order {
    /// Make these runs after those already queued.
    Run(Vec<RunRequest>),
    /// Stop the current runs on these runs' devices, clear their queues, and make these runs. Other devices
    /// continue.
    Replace(Vec<RunRequest>),
    /// End the current run on this device (on all devices if none is given), and drop the runs queued for it.
    Stop(Option<String>),
}

/// Makes runs, in a lane for each device.
#[derive(Debug)]
pub struct Conductor {
    source: Source,
    limits: Limits,
    heat: Arc<HeatWatch>,
}

impl Conductor {
    /// A conductor whose events go to `source`.
    pub fn new(source: Source, limits: Limits) -> Self {
        let heat = Arc::new(HeatWatch::default());
        let source = source.observed_by(heat.clone());
        Self { source, limits, heat }
    }

    fn lane(&self) -> Lane {
        Lane::new(self.source.clone(), self.limits, self.heat.clone())
    }

    /// Makes all of these runs, and ends the sampling of each device when its runs are done. Setting `stop`
    /// ends the current runs and skips the rest; dropping the future ends everything at once.
    pub async fn run_all(self, requests: &[RunRequest], stop: &watch::Receiver<bool>) {
        let mut lanes: BTreeMap<&str, Vec<&RunRequest>> = BTreeMap::new();
        for request in requests {
            lanes.entry(request.site.device_id()).or_default().push(request);
        }
        let mut work = SideBySide::default();
        for requests in lanes.into_values() {
            let mut lane = self.lane();
            work.add(async move {
                lane.run_all(&requests, stop).await;
                lane.finish().await;
            });
        }
        work.finish().await;
    }

    /// Executes orders until their channel closes; then stops the current runs, cleanly unless that takes
    /// long.
    pub async fn serve(self, mut orders: mpsc::Receiver<Order>) {
        // Lanes wait for devices, so orders must not wait for lanes.
        let mut lanes: BTreeMap<String, mpsc::UnboundedSender<LaneOrder>> = BTreeMap::new();
        let mut work = SideBySide::default();
        loop {
            let order = tokio::select! {
                order = orders.recv() => order,
                never = work.go_on() => match never {},
            };
            let Some(order) = order else { break };
            for (device, order) in split(order, lanes.keys()) {
                let lane = lanes.entry(device).or_insert_with(|| {
                    let (orders, ordered) = mpsc::unbounded_channel();
                    work.add(self.lane().serve(ordered));
                    orders
                });
                // A lane lives as long as its channel.
                let _ = lane.send(order);
            }
        }
        drop(lanes);
        work.finish().await;
    }
}

/// Splits an order into one per device.
fn split<'a>(order: Order, known: impl Iterator<Item = &'a String>) -> BTreeMap<String, LaneOrder> {
    let (ends, requests) = match order {
        Order::Run(requests) => (false, requests),
        Order::Replace(requests) => (true, requests),
        Order::Stop(device) => {
            let meant = known.filter(|id| device.as_ref().is_none_or(|device| device == *id));
            return meant.map(|id| (id.clone(), LaneOrder { ends: true, then: Vec::new() })).collect();
        }
    };
    let mut lanes: BTreeMap<String, LaneOrder> = BTreeMap::new();
    for request in requests {
        let lane = lanes.entry(request.site.device_id().to_owned()).or_default();
        lane.ends = ends;
        lane.then.push(request);
    }
    lanes
}

/// Futures running concurrently on this task. Separate tasks would briefly outlive it when it is dropped, and
/// runners end together with whatever started them.
#[derive(Default)]
struct SideBySide<'a>(Vec<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>);

impl<'a> SideBySide<'a> {
    fn add(&mut self, work: impl Future<Output = ()> + Send + 'a) {
        self.0.push(Box::pin(work));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.0.retain_mut(|work| work.as_mut().poll(context).is_pending());
        if self.0.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Drives all of them, and never returns.
    async fn go_on(&mut self) -> Infallible {
        std::future::poll_fn(|context| {
            let _ = self.poll(context);
            Poll::Pending
        })
        .await
    }

    /// Waits for all of them to end.
    async fn finish(mut self) {
        std::future::poll_fn(|context| self.poll(context)).await;
    }
}
