# proto/*.proto -> xp_proto, C by protoc-c in the build folder, included as "<name>.pb-c.h".
file(GLOB protos CONFIGURE_DEPENDS proto/*.proto)
if(NOT protos)
  add_library(xp_proto INTERFACE)
  return()
endif()
find_program(PROTOC_C protoc-c REQUIRED)
pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
set(proto_dir ${CMAKE_BINARY_DIR}/generated/proto)
file(MAKE_DIRECTORY ${proto_dir})
set(proto_sources)
foreach(proto ${protos})
  get_filename_component(name ${proto} NAME_WE)
  add_custom_command(
    OUTPUT ${proto_dir}/${name}.pb-c.c ${proto_dir}/${name}.pb-c.h
    COMMAND ${PROTOC_C} --c_out=${proto_dir} -I${CMAKE_SOURCE_DIR}/proto ${proto}
    DEPENDS ${proto} VERBATIM)
  list(APPEND proto_sources ${proto_dir}/${name}.pb-c.c ${proto_dir}/${name}.pb-c.h)
endforeach()
add_library(xp_proto STATIC ${proto_sources})
target_include_directories(xp_proto PUBLIC ${proto_dir})
target_link_libraries(xp_proto PUBLIC PkgConfig::PROTOBUF_C)
target_compile_options(xp_proto PRIVATE -w)
