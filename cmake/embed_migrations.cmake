# mailroom_embed_migrations(OUTPUT): writes OUTPUT, a C++ file that holds every migrations/N_name.{up,down}.sql and the
# functions. It is rewritten at build time when a file changes, and at configure time when a file is added or removed.

set(MAILROOM_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/write_migrations.cmake")

function(mailroom_embed_migrations output)
  file(GLOB files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/migrations/*.sql" "${PROJECT_SOURCE_DIR}/migrations/functions/*.sql")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${PROJECT_SOURCE_DIR}/migrations" -D "OUTPUT=${output}"
            -P "${MAILROOM_EMBED_SCRIPT}"
    DEPENDS ${files} "${MAILROOM_EMBED_SCRIPT}"
    COMMENT "embedding the migrations"
    VERBATIM)
endfunction()
