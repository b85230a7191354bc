use super::*;
use proptest::prelude::*;

const ALL: [Parse; 23] = [
    Parse::Number,
    Parse::Percent,
    Parse::Pair,
    Parse::Clock,
    Parse::Words,
    Parse::KeyedKb,
    Parse::Pressure,
    Parse::CpuBusy,
    Parse::CpuBusiest,
    Parse::LevelTimes,
    Parse::TimeInState,
    Parse::Sum,
    Parse::ResidentPages,
    Parse::ProcessCpu,
    Parse::ProcessThreads,
    Parse::BatteryCurrent,
    Parse::BatteryVoltage,
    Parse::BatteryPower,
    Parse::DumpsysValue,
    Parse::DumpsysTemperature,
    Parse::DumpsysCooling,
    Parse::DumpsysGpuWork,
    Parse::DumpsysGpuProcess,
];

fn one(parse: Parse, content: &[u8]) -> Result<Option<f64>, Gap> {
    Parser::new(parse).value(0, &[Ok(content)])
}

#[test]
fn single_values() {
    for (parse, content, expected) in [
        (Parse::Number, "31200\n", Ok(Some(31200.0))),
        (Parse::Number, " -5 \n", Ok(Some(-5.0))),
        (Parse::Number, "", Err(Gap::Unreadable)),
        (Parse::Number, "<unknown>", Err(Gap::NotANumber)),
        (Parse::Number, "nan", Err(Gap::NotANumber)),
        (Parse::Number, "inf", Err(Gap::NotANumber)),
        (Parse::Percent, "37 %\n", Ok(Some(37.0))),
        (Parse::Percent, "37@600000000Hz", Ok(Some(37.0))),
        (Parse::Pair, "      0       0\n", Ok(Some(0.0))),
        (Parse::Pair, " 251234 1004936", Ok(Some(25.0))),
        (Parse::Pair, "17", Err(Gap::NotANumber)),
        (Parse::Clock, "680000000", Ok(Some(680.0))),
        (Parse::Clock, "75000000", Ok(Some(75.0))),
        (Parse::Clock, "547000", Ok(Some(547.0))),
        (Parse::Clock, "231", Ok(Some(231.0))),
        (Parse::Sum, " 4096 8192 x", Ok(Some(12288.0))),
        (Parse::ResidentPages, "900 250 100 1 0 50 0", Ok(Some(1_024_000.0))),
        (Parse::ProcessThreads, "12 (a b) c) S 1 2 3 4 5 6 7 8 9 10 700 300 13 14 15 16 9 18", Ok(Some(9.0))),
        (Parse::BatteryVoltage, "4121213", Ok(Some(4.121_213))),
        (Parse::BatteryVoltage, "4188", Ok(Some(4.188))),
    ] {
        let value = one(parse, content.as_bytes());
        match (value, expected) {
            (Ok(Some(value)), Ok(Some(expected))) => {
                let expected: f64 = expected;
                assert!((value - expected).abs() < expected.abs() * 1e-4 + 1e-9, "{content}: {value}");
            }
            (value, expected) => assert_eq!(value, expected, "{content}"),
        }
    }
}

#[test]
fn placeholders_and_the_impossible_are_dropped() {
    let mut zone = Parser::new(Parse::Number);
    (zone.scale, zone.range, zone.placeholders) = (0.001, [-30.0, 150.0], vec![0.0, 27.0]);
    for (content, gap) in [
        ("-273000", Gap::Placeholder),
        ("-274000", Gap::Placeholder),
        ("-40960", Gap::Placeholder),
        ("0", Gap::Placeholder),
        ("27000", Gap::Placeholder),
        ("990000", Gap::Implausible),
    ] {
        assert_eq!(zone.value(0, &[Ok(content.as_bytes())]), Err(gap), "{content}");
    }
    assert_eq!(zone.value(0, &[Ok(b"104000")]), Ok(Some(104.0)));
}

#[test]
fn rates_are_differences_over_the_devices_time() {
    let mut cpu = Parser::new(Parse::CpuBusy);
    cpu.keys = vec!["cpu".to_owned()];
    assert_eq!(cpu.value(1_000_000, &[Ok(b"cpu  100 0 100 800 0 0 0 0 0 0\x1ecpu0 1 1 1 1")]), Ok(None));
    assert_eq!(cpu.value(2_000_000, &[Ok(b"cpu  140 0 110 850 0 0 0 0 0 0")]), Ok(Some(50.0)));
    // Idle time that goes back by one is not a load above 100 %.
    assert_eq!(cpu.value(3_000_000, &[Ok(b"cpu  150 0 110 849 0 0 0 0 0 0")]), Ok(Some(100.0)));
    assert_eq!(cpu.value(4_000_000, &[Ok(b"cpu  150 0 110 849 0 0 0 0 0 0")]), Ok(None));
    // After a gap the next reading counts as the first: nothing is invented for the time in between.
    assert_eq!(cpu.value(5_000_000, &[Err(Gap::Refused)]), Err(Gap::Refused));
    assert_eq!(cpu.value(6_000_000, &[Ok(b"cpu  300 0 110 900 0 0 0 0 0 0")]), Ok(None));

    let mut busiest = Parser::new(Parse::CpuBusiest);
    assert_eq!(busiest.value(0, &[Ok(b"cpu 2 0 0 2\x1ecpu0 1 0 0 1\x1ecpu1 1 0 0 1")]), Ok(None));
    assert_eq!(busiest.value(1, &[Ok(b"cpu 3 0 0 5\x1ecpu0 1 0 0 5\x1ecpu1 4 0 0 2\x1ecpu2 9 0 0 0")]), Ok(Some(75.0)));

    let mut pressure = Parser::new(Parse::Pressure);
    pressure.keys = vec!["some".to_owned()];
    let line = |total: u32| format!("some avg10=0.12 avg60=0.07 avg300=0.02 total={total}\u{1e}full avg10=0 total=9");
    assert_eq!(pressure.value(0, &[Ok(line(1_000).as_bytes())]), Ok(None));
    assert_eq!(pressure.value(1_000_000, &[Ok(line(251_000).as_bytes())]), Ok(Some(25.0)));

    let mut process = Parser::new(Parse::ProcessCpu);
    assert_eq!(process.value(0, &[Ok(b"1 (x) S 1 2 3 4 5 6 7 8 9 10 100 20 0 0 0 0 1 0")]), Ok(None));
    assert_eq!(process.value(500_000, &[Ok(b"1 (x) S 1 2 3 4 5 6 7 8 9 10 150 20 0 0 0 0 1 0")]), Ok(Some(100.0)));
}

#[test]
fn time_tables_give_the_mean_clock() {
    let mut gpu = Parser::new(Parse::LevelTimes);
    gpu.levels_mhz = levels_mhz(b"680000000 220000000 \n");
    assert_eq!(gpu.value(0, &[Ok(b"1000 5000 ")]), Ok(None));
    assert_eq!(gpu.value(1, &[Ok(b"2000 6000 ")]), Ok(Some(450.0)));
    assert_eq!(gpu.value(2, &[Ok(b"2000 6000 ")]), Ok(None), "the GPU was off");
    let mut cpu = Parser::new(Parse::TimeInState);
    assert_eq!(cpu.value(0, &[Ok(b"300000 10\x1e2000000 10")]), Ok(None));
    assert_eq!(cpu.value(1, &[Ok(b"300000 10\x1e2000000 20")]), Ok(Some(2000.0)));
}

#[test]
fn battery_units_by_size_and_sign_by_status() {
    let mut current = Parser::new(Parse::BatteryCurrent);
    let mut read = |number: &[u8], status: &[u8]| current.value(0, &[Ok(number), Ok(status)]).unwrap().unwrap();
    let cases: [(&[u8], &[u8], f64); 4] = [
        (b"559", b"Charging\n", 559.0),
        (b"559", b"Discharging", -559.0),
        // From here on the device is known to report µA; this one has the wrong sign.
        (b"-326171", b"Charging", 326.171),
        (b"12000", b"Discharging", -12.0),
    ];
    for (number, status, expected) in cases {
        assert!((read(number, status) - expected).abs() < 1e-9, "{expected}");
    }
    let mut power = Parser::new(Parse::BatteryPower);
    let watts = power.value(0, &[Ok(b"234317"), Ok(b"Discharging"), Ok(b"4121213")]).unwrap().unwrap();
    assert!((watts + 0.965_67).abs() < 1e-4, "{watts}");
}

proptest! {
    #[test]
    fn no_content_can_do_harm(contents in proptest::collection::vec(any::<Vec<u8>>(), 2), parse in 0..ALL.len()) {
        let mut parser = Parser::new(ALL[parse]);
        parser.keys = vec!["cpu".to_owned()];
        parser.levels_mhz = vec![1.0, 2.0];
        for (at, content) in contents.iter().enumerate() {
            let value = parser.value(at as u64, &[Ok(content), Ok(content), Ok(content)]);
            prop_assert!(!matches!(value, Ok(Some(value)) if !value.is_finite()));
        }
    }

    #[test]
    fn tables_of_numbers_give_plausible_shares(lines in proptest::collection::vec("cpu[0-9]{0,2} [0-9]{1,25} [0-9]{1,5} [0-9]{1,5} [0-9]{1,25}", 1..6)) {
        for parse in [Parse::CpuBusy, Parse::CpuBusiest] {
            let mut parser = Parser::new(parse);
            parser.keys = vec!["cpu".to_owned()];
            for count in 0..lines.len() {
                let content = lines[count..].join("\u{1e}");
                if let Ok(Some(share)) = parser.value(count as u64, &[Ok(content.as_bytes())]) {
                    prop_assert!((0.0..=100.0).contains(&share), "{share}");
                }
            }
        }
    }
}
