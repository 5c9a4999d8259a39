# web/ -> web/dist (npm) -> one C file of compressed assets, see server/static.h.
# Without node, or with XP_WEB=OFF, whatever web/dist holds is embedded, or a page that says how
# to build it. The stamp lies in web/dist so that all build folders share one web build.
set(web_dist ${CMAKE_SOURCE_DIR}/web/dist)
set(web_stamp ${web_dist}/.built)
set(XP_WEB_ASSETS_C)
if(EXISTS ${CMAKE_SOURCE_DIR}/server/static.h)
  set(XP_WEB_ASSETS_C ${CMAKE_BINARY_DIR}/generated/static_assets.c)
  file(GLOB web_lock CONFIGURE_DEPENDS web/package-lock.json)
  find_program(NPM npm HINTS ${CMAKE_SOURCE_DIR}/.venv/bin)
  if(XP_WEB AND NPM AND web_lock)
    file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS web/src/* web/public/*)
    file(GLOB web_top CONFIGURE_DEPENDS web/*.html web/*.json web/*.ts web/*.mjs web/*.js)
    add_custom_command(
      OUTPUT ${web_stamp}
      COMMAND ${CMAKE_SOURCE_DIR}/cmake/web_build.sh ${CMAKE_SOURCE_DIR}/web ${NPM}
      DEPENDS ${web_sources} ${web_top} ${CMAKE_SOURCE_DIR}/cmake/web_build.sh
      COMMENT "Building web/" USES_TERMINAL VERBATIM)
    set(web_inputs ${web_stamp})
  else()
    file(GLOB_RECURSE web_inputs CONFIGURE_DEPENDS ${web_dist}/*)
  endif()
  add_custom_command(
    OUTPUT ${XP_WEB_ASSETS_C}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/cmake/embed.py ${web_dist} ${XP_WEB_ASSETS_C}
    DEPENDS ${web_inputs} ${CMAKE_SOURCE_DIR}/cmake/embed.py
    COMMENT "Embedding web assets" VERBATIM)
  add_custom_target(xp_web_assets DEPENDS ${XP_WEB_ASSETS_C})
endif()
