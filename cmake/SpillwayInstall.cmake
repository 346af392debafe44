# What `cmake --install` puts where. The program finds its two libraries beside itself, at ../lib/spillway, so an installed
# tree can be moved as a whole.
install(TARGETS spillway RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
foreach(library spillway_preload spillway_torch spillway_torch_cuda)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/spillway)
  endif()
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
