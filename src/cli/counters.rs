//! `qnnscope counters`: readable counters of a device, how fast they can be read, and why others cannot.

use super::headless::{print, print_json};
use super::options::rate;
use super::{CliError, Global, OK, say, setup, target};
use crate::devices::Device;
use crate::event::{Event, SamplerReport, clean_text};
use crate::probes::{CounterOptions, Discovery, Options, Rate, Sampler, discover};
use crate::report::{CounterRow, CountersDocument, SamplingDocument, counters_text};
use crate::session::Hub;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;

/// Maximum wait for the first reading.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Arguments of `qnnscope counters`.
#[derive(Debug, clap::Args)]
pub struct CountersArgs {
    /// Counters to read, by id, group or glob: cpu, thermal.npu* [default: what the catalogue chooses]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    counters: Vec<String>,
    /// File with your own counters [default: counters.toml in the config folder]
    #[arg(long, value_name = "FILE")]
    counter_file: Option<PathBuf>,
    /// Read them for this many seconds and report how well that went
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    sample: Option<u64>,
    /// Readings per second; 0: as fast as possible
    #[arg(long, value_name = "HZ", default_value_t = 20.0, value_parser = rate)]
    rate: f64,
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
}

/// Lists the counters of a device, and reads them if requested.
pub fn counters(args: &CountersArgs, global: &Global) -> Result<u8, CliError> {
    let options = CounterOptions::new(args.rate, args.counters.clone(), args.counter_file.as_deref())?;
    let document = setup::block_on(collect(args, &options, global))??;
    if args.json {
        print_json(&document)?;
    } else {
        print(&counters_text(&document))?;
    }
    Ok(OK)
}

async fn collect(args: &CountersArgs, options: &CounterOptions, global: &Global) -> Result<CountersDocument, CliError> {
    let device = target::find(&target::named(global), global).await?;
    let root = device.describe().await?.root;
    let found = discover(&device, root, &options.custom).await?;
    let (chosen, unknown) = options.choose(&found);
    for pattern in unknown {
        say(&format!("note: {} has no counter named {}", device.id(), clean_text(&pattern)));
    }
    if chosen.is_empty() && !args.counters.is_empty() {
        let text = format!("{} has none of these counters; leave out --counters to list all", device.id());
        return Err(CliError::Usage(text));
    }
    let wanted = |id: &str| chosen.iter().any(|counter| counter.id == id);
    let listed = found.readable.iter().filter(|counter| args.counters.is_empty() || wanted(&counter.id));
    let rows = listed.map(|counter| CounterRow::readable(counter, wanted(&counter.id))).collect();
    let unreadable = if args.counters.is_empty() { found.unreadable.as_slice() } else { &[] };
    let refused = unreadable.iter().map(CounterRow::unreadable).collect();
    let sampling = match args.sample {
        Some(seconds) => {
            let rate = if args.rate > 0.0 { Rate::Hertz(args.rate) } else { Rate::Max };
            let sampler_options = Options { rate, pid: None, suspended_us: found.suspended_us, persists: true };
            Some(sample(&device, root, &found, options, sampler_options, seconds).await)
        }
        None => None,
    };
    Ok(CountersDocument::new(device.id(), rows, refused, sampling))
}

/// Reads the counters for a while and returns the result.
async fn sample(
    device: &Device,
    root: crate::devices::Root,
    found: &Discovery,
    options: &CounterOptions,
    sampler_options: Options,
    seconds: u64,
) -> SamplingDocument {
    let (mut hub, source) = Hub::new(None);
    let counters = options.choose(found).0;
    let mut document = SamplingDocument::new(counters.len());
    let sampler = Sampler::start(device, root, counters, sampler_options, source);
    let (begun, begun_at) = watch::channel(false);
    let mut span_us: Option<(u64, u64)> = None;
    let mut ticks: BTreeMap<u32, u64> = BTreeMap::new();
    let read = async {
        while let Some(record) = hub.next().await {
            match record.event {
                Event::Counters(sample) => {
                    document.take(&sample.values);
                    *ticks.entry(sample.set).or_default() += 1;
                    let first_us = span_us.map_or(sample.t_us, |(first_us, _)| first_us);
                    span_us = Some((first_us, sample.t_us.max(first_us)));
                    // Fails once the time is up.
                    let _ = begun.send(true);
                }
                Event::SamplerReported(report) => document.report(&report),
                Event::ClockAligned(clock) => document.uncertainty_us = Some(clock.uncertainty_us),
                Event::SamplerEnded(ended) => document.ended = ended.reason,
                // Sampling resumes.
                Event::CounterSetDeclared(_) => document.ended = None,
                _ => {}
            }
        }
    };
    let stop = async {
        tokio::select! {
            () = sampled_for(begun_at, Duration::from_secs(seconds)) => {}
            _ = setup::termination() => {}
        }
        sampler.stop().await;
    };
    tokio::join!(read, stop);
    // Reports arrive once a second and miss the last partial second; the readings cover the whole time.
    if let Some((first_us, last_us)) = span_us {
        document.seconds = last_us.saturating_sub(first_us) as f64 / 1e6;
        document.ticks = ticks.values().copied().max().unwrap_or(0);
    }
    document
}

/// Waits for the first reading, then for `time`. A device may never send one.
async fn sampled_for(mut begun: watch::Receiver<bool>, time: Duration) {
    // Starting a shell and timing the files takes a moment, which does not count as sampling.
    let _ = tokio::time::timeout(START_LIMIT, begun.wait_for(|begun| *begun)).await;
    tokio::time::sleep(time).await;
}

impl SamplingDocument {
    fn report(&mut self, report: &SamplerReport) {
        self.late += report.late;
        self.missed += report.missed;
        self.cpu_us_per_tick = report.cpu_us_per_tick.or(self.cpu_us_per_tick);
    }
}
