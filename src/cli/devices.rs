//! `qnnscope devices` and `qnnscope connect`.

use super::headless::{print, print_json};
use super::patience::Patience;
use super::{CliError, Global, OK, say, setup};
use crate::devices::{AdbServer, AdbTransport, Attached, Device, DeviceError};
use crate::report::{AdbDocument, DeviceRow, DevicesDocument, devices_text};

/// Arguments of `qnnscope devices`.
#[derive(Debug, clap::Args)]
pub struct DevicesArgs {
    /// Print the document as JSON on stdout
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `qnnscope connect`.
#[derive(Debug, clap::Args)]
pub struct ConnectArgs {
    /// Address of a device with wireless debugging [default port: 5555]
    #[arg(value_name = "HOST[:PORT]")]
    address: String,
}

/// Lists this machine and the attached devices. Without adb the list is shorter, which is not an error.
pub fn devices(args: &DevicesArgs, global: &Global) -> Result<u8, CliError> {
    let server = AdbServer::locate(global.adb_server.as_deref())?;
    let work = async { Ok::<_, CliError>(collect(server).await) };
    let document = args.patience.wait(|| format!("the adb server at {server} and its devices"), work)?;
    if args.json {
        print_json(&document)?;
    } else {
        print(&devices_text(&document))?;
    }
    Ok(OK)
}

async fn collect(server: AdbServer) -> DevicesDocument {
    let attached = async {
        server.ensure().await?;
        server.devices().await
    };
    let (attached, problem) = match attached.await {
        Ok(attached) => (attached, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let mut rows = vec![describe(&Device::local(), None).await];
    // All in parallel: a phone takes most of a second to answer.
    let asked: Vec<_> = attached
        .into_iter()
        .map(|attached| {
            let device = Device::new(AdbTransport::new(server, &attached.serial));
            tokio::spawn(async move { describe(&device, Some(attached)).await })
        })
        .collect();
    for row in asked {
        // A task that panicked is our bug; the other devices are still worth showing.
        if let Ok(row) = row.await {
            rows.push(row);
        }
    }
    DevicesDocument::new(AdbDocument::new(&server.to_string(), problem.as_ref()), rows)
}

async fn describe(device: &Device, attached: Option<Attached>) -> DeviceRow {
    let facts = match &attached {
        Some(attached) if !attached.state.is_ready() => None,
        _ => Some(device.describe().await),
    };
    DeviceRow::new(device, attached.as_ref(), facts)
}

/// Connects the adb server to a device on the network.
pub fn connect(args: &ConnectArgs, global: &Global) -> Result<u8, CliError> {
    let server = AdbServer::locate(global.adb_server.as_deref())?;
    let answer = setup::block_on(async {
        server.ensure().await?;
        server.connect_to(&args.address).await
    })?;
    let answer = answer.map_err(|error| match error {
        DeviceError::Refused { action, message } => CliError::Missing {
            message: format!("{action} failed: {message}"),
            hint: "check address and port (Developer options, Wireless debugging); if the device asks for it, \
                   pair first with `adb pair HOST:PORT`"
                .to_owned(),
        },
        other => CliError::Device(other),
    })?;
    say(&answer);
    Ok(OK)
}
