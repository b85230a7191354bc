//! Every declared record against the table of measured offsets in `tests/data/qnn-abi-offsets.csv`.

use super::*;
use std::collections::BTreeMap;
use std::mem::{align_of, offset_of, size_of};

/// (C record, C field) -> (offset, size, alignment if known); the record itself has the empty field name.
fn measured() -> BTreeMap<(String, String), (usize, usize, Option<usize>)> {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/qnn-abi-offsets.csv"));
    text.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |i: usize| cells[i].parse::<usize>().unwrap();
            ((cells[1].to_owned(), cells[2].to_owned()), (number(3), number(4), cells[5].parse().ok()))
        })
        .collect()
}

/// Checks size, alignment and fields; every field that the table lists must be named or waived with a reason.
macro_rules! check {
    ($table:ident, $c:literal => $rust:ty { $($c_field:literal : $($path:tt).+),* $(,)? } waived { $($waived:literal),* $(,)? }) => {{
        let key = |field: &str| ($c.to_owned(), field.to_owned());
        let (_, size, align) = $table.get(&key("")).copied().unwrap_or_else(|| panic!("{} is not in the table", $c));
        assert_eq!(size_of::<$rust>(), size, "size of {}", $c);
        assert_eq!(Some(align_of::<$rust>()), align, "alignment of {}", $c);
        $(
            let (offset, _, _) = $table.get(&key($c_field)).copied().unwrap_or_else(|| panic!("{}.{} is not in the table", $c, $c_field));
            assert_eq!(offset_of!($rust, $($path).+), offset, "offset of {}.{}", $c, $c_field);
        )*
        let named: Vec<&str> = vec![$($c_field,)* $($waived,)*];
        for ((record, field), _) in &$table {
            assert!(record != $c || field.is_empty() || named.contains(&field.as_str()), "{record}.{field} is not checked");
        }
    }};
}

#[test]
fn core_records() {
    let t = measured();
    check!(t, "Qnn_Version_t" => Version { "major": major, "minor": minor, "patch": patch } waived {});
    check!(t, "Qnn_ScaleOffset_t" => ScaleOffset { "scale": scale, "offset": offset } waived {});
    check!(t, "Qnn_AxisScaleOffset_t" => AxisScaleOffset {
        "axis": axis, "numScaleOffsets": count, "scaleOffset": scale_offsets } waived {});
    check!(t, "Qnn_BwScaleOffset_t" => BwScaleOffset {
        "bitwidth": bitwidth, "scale": scale, "offset": offset } waived {});
    check!(t, "Qnn_BwAxisScaleOffset_t" => BwAxisScaleOffset {
        "bitwidth": bitwidth, "axis": axis, "numElements": count, "scales": scales, "offsets": offsets } waived {});
    check!(t, "Qnn_QuantizeParams_t" => QuantizeParams {
        "encodingDefinition": definition, "quantizationEncoding": encoding,
        "scaleOffsetEncoding": data.scale_offset, "axisScaleOffsetEncoding": data.axis_scale_offset,
        "bwScaleOffsetEncoding": data.bw_scale_offset, "bwAxisScaleOffsetEncoding": data.bw_axis_scale_offset,
    } waived {
        // Encodings that are named but not decoded.
        "blockEncoding", "blockwiseExpansion", "vectorEncoding", "floatBlockEncoding",
        "bwAxisScaleOffsetMappedEncoding", "bwBlockMappedEncoding", "bwBlockwiseExpansionMappedEncoding",
        "bwFloatBlockEncoding", "microScalingEncoding", "arrayOfEncoding",
    });
    check!(t, "QnnContext_ParamsV1_t" => ContextParamsV1 {
        "config": configs, "binaryBuffer": binary, "binaryBufferSize": bytes, "profile": profile, "notifyFunc": notify,
        "notifyParam": parameter } waived {});
    check!(t, "QnnContext_ParamsV2_t" => ContextParamsV2 {
        "config": v1.configs, "binaryBuffer": v1.binary, "binaryBufferSize": v1.bytes, "profile": v1.profile,
        "notifyFunc": v1.notify, "notifyParam": v1.parameter, "callback": callback } waived {});
    check!(t, "QnnContext_Params_t" => ContextParams { "version": version, "v1": body.v1, "v2": body.v2 } waived {});
    check!(t, "Qnn_ClientBuffer_t" => ClientBuffer { "data": data, "dataSize": size } waived {});
    check!(t, "Qnn_TensorV1_t" => TensorV1 {
        "id": id, "name": name, "type": kind, "dataFormat": data_format, "dataType": data_type,
        "quantizeParams": quantize, "rank": rank, "dimensions": dimensions, "memType": mem_type,
        "clientBuf": buffer, "memHandle": buffer } waived {});
    check!(t, "Qnn_SparseParams_t" => SparseParams { "type": kind, "hybridCoo": hybrid_coo } waived {});
    check!(t, "Qnn_TensorV2_t" => TensorV2 {
        "id": id, "name": name, "type": kind, "dataFormat": data_format, "dataType": data_type,
        "quantizeParams": quantize, "rank": rank, "dimensions": dimensions, "memType": mem_type,
        "clientBuf": buffer, "memHandle": buffer, "retrieveRaw": buffer,
        "isDynamicDimensions": dynamic_dimensions, "sparseParams": sparse, "isProduced": is_produced } waived {});
    check!(t, "Qnn_Tensor_t" => Tensor { "version": version, "v1": body, "v2": body } waived {});
    check!(t, "Qnn_Scalar_t" => Scalar {
        "dataType": data_type, "floatValue": value.float, "doubleValue": value.double, "uint64Value": value.u64,
        "int64Value": value.i64, "uint32Value": value.u32, "int32Value": value.i32, "uint16Value": value.u16,
        "int16Value": value.i16, "uint8Value": value.u8, "int8Value": value.i8, "stringValue": value.text,
    } waived { "bool8Value", "bfloat16Value" });
    check!(t, "Qnn_Param_t" => Param {
        "paramType": kind, "name": name, "scalarParam": value.scalar, "tensorParam": value.tensor } waived {});
    check!(t, "Qnn_OpConfigV1_t" => OpConfigV1 {
        "name": name, "packageName": package, "typeName": op_type, "numOfParams": param_count, "params": params,
        "numOfInputs": input_count, "inputTensors": inputs, "numOfOutputs": output_count,
        "outputTensors": outputs } waived {});
    check!(t, "Qnn_OpConfig_t" => OpConfig { "version": version, "v1": v1 } waived {});
    check!(t, "QnnGraph_Config_t" => CustomConfig { "option": option, "customConfig": custom } waived {
        "priority", "profileHandle", "profilingState", "numProfilingExecutions", "enableBinarySectionWeightsUpdates" });
    check!(t, "QnnDevice_Config_t" => CustomConfig { "option": option, "customConfig": custom } waived {
        "hardwareInfo" });
    check!(t, "QnnProfile_EventData_t" => EventData {
        "type": kind, "unit": unit, "value": value, "identifier": identifier } waived {});
    check!(t, "QnnProfile_ExtendedEventDataV1_t" => ExtendedEventDataV1 {
        "type": kind, "unit": unit, "value": value, "backendOpaqueObject": value, "timestamp": timestamp,
        "identifier": identifier } waived {});
    check!(t, "QnnProfile_ExtendedEventData_t" => ExtendedEventData { "version": version, "v1": v1 } waived {});
    check!(t, "QnnDevice_PlatformInfoV1_t" => PlatformInfoV1 {
        "numHwDevices": device_count, "hwDevices": devices } waived {});
    check!(t, "QnnDevice_PlatformInfo_t" => PlatformInfo { "version": version, "v1": v1 } waived {});
    check!(t, "QnnDevice_HardwareDeviceInfoV1_t" => HardwareDeviceInfoV1 {
        "deviceId": device_id, "deviceType": device_type, "numCores": core_count, "cores": cores,
        "deviceInfoExtension": extension } waived {});
    check!(t, "QnnDevice_HardwareDeviceInfo_t" => HardwareDeviceInfo { "version": version, "v1": v1 } waived {});
}

#[test]
fn interface_head() {
    let t = measured();
    let at = |field: &str| t[&("QnnInterface_t".to_owned(), field.to_owned())].0;
    assert_eq!(offset_of!(InterfaceHead, backend_id), at("backendId"));
    assert_eq!(offset_of!(InterfaceHead, provider_name), at("providerName"));
    assert_eq!(offset_of!(InterfaceHead, core_version), at("apiVersion"));
    assert_eq!(size_of::<InterfaceHead>(), 40);
    let at = |field: &str| t[&("QnnSystemInterface_t".to_owned(), field.to_owned())].0;
    assert_eq!(offset_of!(SystemInterfaceHead, backend_id), at("backendId"));
    assert_eq!(offset_of!(SystemInterfaceHead, provider_name), at("providerName"));
    assert_eq!(offset_of!(SystemInterfaceHead, version), at("systemApiVersion"));
    assert_eq!(size_of::<SystemInterfaceHead>(), 32);
    // By-value sizes measured on the two runtimes.
    assert_eq!(size_of::<InterfaceByValue<72>>(), 616);
    assert_eq!(size_of::<InterfaceByValue<75>>(), 640);
}

#[test]
fn htp_records() {
    let t = measured();
    check!(t, "QnnHtpDevice_CustomConfig_t@new" => HtpDeviceCustomConfig {
        "option": option, "socModel": value, "arch": value } waived {
        "useSignedProcessDomain", "useSecureProcessDomain", "asyncExecute", "htpExtension" });
    let old = t[&("QnnHtpDevice_CustomConfig_t@old".to_owned(), "socModel".to_owned())].0;
    assert_eq!(offset_of!(HtpDeviceCustomConfig, old_value), old);
    check!(t, "QnnHtpGraph_OptimizationOption_t" => HtpOptimization { "type": kind, "floatValue": value } waived {});
    check!(t, "QnnHtpGraph_CustomConfig_t" => HtpGraphCustomConfig {
        "option": option, "optimizationOption": value.optimization, "precision": value.precision,
        "vtcmSizeInMB": value.vtcm_mb, "numHvxThreads": value.hvx_threads } waived {
        "foldReluActivationIntoConvOff", "shortDepthConvOnHmxOff", "reserved", "finalizeConfig", "numCores",
        "parallelGraphExecutionConfig", "vtcmSizeInBytes", "hmxBoundingInfo", "weightsPacking", "assumeSameQuant",
        "shareIOBuffer" });
    check!(t, "QnnHtpPerfInfrastructure_DcvsV3_t" => DcvsV3 {
        "contextId": context_id, "setDcvsEnable": set_dcvs_enable, "dcvsEnable": dcvs_enable,
        "powerMode": power_mode, "setSleepLatency": set_sleep_latency, "sleepLatency": sleep_latency_us,
        "setSleepDisable": set_sleep_disable, "sleepDisable": sleep_disable, "setBusParams": set_bus_params,
        "busVoltageCornerMin": bus_min, "busVoltageCornerTarget": bus_target, "busVoltageCornerMax": bus_max,
        "setCoreParams": set_core_params, "coreVoltageCornerMin": core_min, "coreVoltageCornerTarget": core_target,
        "coreVoltageCornerMax": core_max } waived {});
    check!(t, "QnnHtpPerfInfrastructure_PowerConfig_t" => PowerConfig {
        "option": option, "dcvsV3Config": value.dcvs_v3, "rpcControlLatencyConfig": value.rpc_control_latency_us,
        "rpcPollingTimeConfig": value.rpc_polling_time_us } waived {
        "hmxTimeoutIntervalUsConfig", "hmxV2Config", "adaptivePollingTimeConfig" });
    check!(t, "QnnHtpDevice_PerfInfrastructure_t" => PerfInfrastructure {
        "createPowerConfigId": create_power_config_id, "destroyPowerConfigId": destroy_power_config_id,
        "setPowerConfig": set_power_config, "setMemoryConfig": set_memory_config } waived {});
    check!(t, "QnnHtpDevice_Infrastructure_t" => HtpInfrastructure {
        "infraType": kind, "perfInfra": perf } waived {});
    check!(t, "QnnHtpDevice_OnChipDeviceInfoExtension_t" => OnChipDeviceInfo {
        "vtcmSize": vtcm_mb, "socModel": soc_model, "signedPdSupport": signed_pd, "dlbcSupport": dlbc,
        "arch": arch } waived {});
    check!(t, "QnnHtpDevice_DeviceInfoExtension_t" => HtpDeviceInfoExtension {
        "devType": kind, "onChipDevice": on_chip } waived {});
    check!(t, "QnnHtpSystemContext_GraphBlobInfoV1_t" => GraphBlobInfoV1 {
        "spillFillBufferSize": spill_fill_bytes, "vtcmSize": vtcm_bytes, "optimizationLevel": optimization_level,
        "htpDlbc": dlbc, "numHvxThreads": hvx_threads } waived {});
    check!(t, "QnnHtpSystemContext_GraphBlobInfo_t" => GraphBlobInfo {
        "version": version, "contextBinaryGraphBlobInfoV1": v1 } waived {});
    check!(t, "QnnHtpSystemContext_ContextBlobInfo_t" => ContextBlobInfo {
        "version": version, "contextBinaryContextBlobInfoV1": dsp_arch } waived {});
}

#[test]
fn system_records() {
    let t = measured();
    check!(t, "QnnSystemContext_GraphInfoV3_t" => GraphInfoV3 {
        "graphName": name, "numGraphInputs": input_count, "graphInputs": inputs, "numGraphOutputs": output_count,
        "graphOutputs": outputs, "numUpdateableTensors": updateable_count, "updateableTensors": updateable,
        "graphBlobInfoSize": blob_info_size, "graphBlobInfo": blob_info, "startOpIndex": start_op_index,
        "endOpIndex": end_op_index } waived {});
    check!(t, "QnnSystemContext_GraphInfo_t" => GraphInfo {
        "version": version, "graphInfoV1": v3, "graphInfoV2": v3, "graphInfoV3": v3 } waived {});
    check!(t, "QnnSystemContext_BinaryInfoV1_t" => BinaryInfoV1 {
        "backendId": backend_id, "buildId": build_id, "coreApiVersion": core_api, "backendApiVersion": backend_api,
        "socVersion": soc_version, "hwInfoBlobVersion": hw_blob_version,
        "contextBlobVersion": context_blob_version, "hwInfoBlobSize": hw_blob_size, "hwInfoBlob": hw_blob,
        "contextBlobSize": context_blob_size, "numContextTensors": context_tensor_count,
        "contextTensors": context_tensors, "numGraphs": graph_count, "graphs": graphs } waived {});
    check!(t, "QnnSystemContext_BinaryInfoV3_t" => BinaryInfoV3 {
        "backendId": backend_id, "buildId": build_id, "coreApiVersion": core_api, "backendApiVersion": backend_api,
        "socVersion": soc_version, "contextBlobVersion": context_blob_version,
        "contextBlobSize": context_blob_size, "numContextTensors": context_tensor_count,
        "contextTensors": context_tensors, "numGraphs": graph_count, "graphs": graphs,
        "platformInfo": platform_info, "contextMetadataSize": metadata_size, "contextMetadata": metadata,
        "socModel": soc_model } waived {});
    check!(t, "QnnSystemContext_BinaryInfo_t" => BinaryInfo {
        "version": version, "contextBinaryInfoV1": info.v1, "contextBinaryInfoV2": info.v1,
        "contextBinaryInfoV3": info.v3 } waived {});
}

#[test]
fn system_profile_records() {
    let t = measured();
    check!(t, "QnnSystemProfile_SerializationTargetFile_t" => ProfileTargetFile {
        "fileName": name, "fileDirectory": directory } waived {});
    check!(t, "QnnSystemProfile_SerializationTarget_t" => ProfileTarget { "type": kind, "file": file } waived {});
    check!(t, "QnnSystemProfile_SerializationFileHeader_t" => ProfileFileHeader {
        "appName": app_name, "appVersion": app_version, "backendVersion": backend_version } waived {});
    check!(t, "QnnSystemProfile_SerializationTargetConfig_t" => ProfileTargetConfig {
        "type": option, "maxNumMessages": value.max_messages, "serializationHeader": value.header } waived {});
    check!(t, "QnnSystemProfile_HeaderV1_t" => ProfileHeader {
        "startTime": start_us, "stopTime": stop_us, "startMem": start_memory, "stopMem": stop_memory,
        "methodType": method, "visibility": visibility, "graphName": graph_name } waived {});
    check!(t, "QnnSystemProfile_ProfileEventV1_t" => ProfileEventRecord {
        "type": kind, "eventData": data.plain, "extendedEventData": data.extended,
        "profileSubEventData": sub_events, "numSubEvents": sub_event_count } waived {});
    check!(t, "QnnSystemProfile_ProfileDataV1_t" => ProfileDataV1 {
        "header": header, "profilingEvents": events, "numProfilingEvents": event_count } waived {});
    check!(t, "QnnSystemProfile_ProfileData_t" => ProfileData { "version": version, "v1": v1 } waived {});
}
