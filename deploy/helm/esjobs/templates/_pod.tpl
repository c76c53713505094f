{{- define "esjobs.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
containers:
  - name: esjobs
    image: {{ .root.Values.image | quote }}
    args: {{ .args | toJson }}
    envFrom:
      - secretRef:
          name: {{ .root.Values.secret | quote }}
          optional: true
    {{- if .service }}
    env:
      # /metrics and /health have no login: keep the Service inside the cluster
      - {name: ESJOBS_NIGHTS__HOST, value: "0.0.0.0"}
    ports:
      - {name: metrics, containerPort: 9464}
    startupProbe:
      httpGet: {path: /metrics, port: metrics}
      failureThreshold: 30
    livenessProbe:
      httpGet: {path: /metrics, port: metrics}
      periodSeconds: 60
      timeoutSeconds: 10
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities:
        drop: ["ALL"]
    resources: {{- toYaml .root.Values.resources | nindent 6 }}
    volumeMounts:
      - {name: settings, mountPath: /etc/esjobs, readOnly: true}
      - {name: state, mountPath: /var/lib/esjobs}
      - {name: scratch, mountPath: /tmp}
volumes:
  - name: settings
    configMap: {name: {{ .root.Release.Name | quote }}}
  - name: state
    {{- if .root.Values.state.size }}
    persistentVolumeClaim: {claimName: {{ printf "%s-state" .root.Release.Name | quote }}}
    {{- else }}
    emptyDir: {}
    {{- end }}
  - name: scratch
    emptyDir: {sizeLimit: {{ .root.Values.scratch | quote }}}
{{- end -}}
