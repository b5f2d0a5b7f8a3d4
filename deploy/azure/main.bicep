// Everything that the SQL Writer needs, in one resource group and without a key (docs/deploy.md):
//   make azure GROUP=NAME                            a Cosmos DB account and a SQL database are made too
//   make azure GROUP=NAME PARAMS=theirs.bicepparam   they are others': the account's owner runs cosmos.bicep
// Nothing depends on who deploys: the next person, or a pipeline, changes nothing.

@description('Environment: only documents whose request_details.sys_name is exactly this are touched.')
@minLength(1)
@maxLength(20)
param sysName string = 'web'
param location string = resourceGroup().location
@description('live, or shadow: compare and write nothing (docs/cutover.md).')
@allowed(['live', 'shadow'])
param mode string = 'live'
@description('Begins the names of leases: sysName and a hyphen, or longer. A new one reads all documents again.')
param leasePrefix string = '${sysName}-'

@description('https://NAME.documents.azure.com:443/ of an account that others own. Empty: an account is made.')
param cosmosEndpoint string = ''
param cosmosDatabase string = 'invoices'
param cosmosContainer string = 'AI_PROCESS_LOGS'
param leaseContainer string = 'sqlwriter-leases'
@description('Partition key of the container of documents, where it is made. The app finds that of an existing one.')
param partitionKeyPaths array = ['/request_details/id']
@description('Object ids of persons who may read and write documents of an account that is made: who submits examples.')
param dataContributors array = []

@description('NAME.database.windows.net of a server that others own. Empty: a server and a database are made.')
param sqlServer string = ''
param sqlDatabase string = 'sqlwriter'
param sqlSchema string = 'dbo'
@description('Entra administrator of a server that is made: name, objectId, type (User, Group). {}: as it is.')
param sqlAdmin object = {}
param sqlSku object = { name: 'S0', tier: 'Standard' }
@description('Connections of one instance to SQL. 4: as many as it writes batches at a time (host.json).')
param sqlMaxOpen int = 4

@description('File deployed with the app: mapping.json. Empty: the mapping that is built in (docs/rules.md).')
param mapping string = ''
@description('App settings beside those of this file, no secrets. A deployment replaces all: set none by hand.')
param settings object = {}
@description('Most instances of each function; the HTTP functions count as one.')
@minValue(1)
@maxValue(1000)
param maximumInstances int = 40
param instanceMemoryMB int = 2048
@description('Subnet delegated to Microsoft.App/environments, for private endpoints of others. Empty: none.')
param subnetId string = ''

@description('Client id of the operators\' pages (docs/settings.md, Sign-in). Empty: they stay closed.')
param signInClientId string = ''
@description('Who gets the alarms. Empty: no alert rules.')
param alertEmail string = ''
@description('false where who deploys may not assign roles: the output missingRoles says what must be given.')
param assignRoles bool = true
@description('Locks against deletion on what holds data: az group delete then fails. Wants the right to make locks.')
param locks bool = false

var token = uniqueString(resourceGroup().id, sysName)
var suffix = take(token, 8)
// A site has letters, digits and hyphens; the name of an environment may have underscores too.
var appName = 'func-sqlwriter-${toLower(replace(sysName, '_', '-'))}-${suffix}'
var newCosmos = empty(cosmosEndpoint)
var account = 'cosmos-sqlwriter-${suffix}'
var endpoint = newCosmos ? 'https://${account}.documents.azure.com:443/' : cosmosEndpoint
var newSql = empty(sqlServer)
var server = 'sql-sqlwriter-${suffix}'
var host = newSql ? '${server}${environment().suffixes.sqlServerHostname}' : sqlServer
var address = 'sqlserver://${host}?database=${sqlDatabase}'
var login = environment().authentication.loginEndpoint
var runsQueue = 'sqlwriter-${sysName}-runs'
var batchesQueue = 'sqlwriter-${sysName}-batches'
// Storage Blob Data Owner; Azure Service Bus Data Owner, because the host counts messages to scale, which Receiver and
// Sender may not; Monitoring Metrics Publisher.
var roles = 'Microsoft.Authorization/roleDefinitions'
var blobDataOwner = subscriptionResourceId(roles, 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b')
var serviceBusDataOwner = subscriptionResourceId(roles, '090c5cfd-751d-490a-894a-3ce6f1109419')
var metricsPublisher = subscriptionResourceId(roles, '3913510d-42f4-4e42-8a64-420c390055eb')
var principal = identity.properties.principalId
var client = identity.properties.clientId

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = { name: appName, location: location }

// The host's storage, the package of the app, and evidence.
resource storage 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: 'st${token}'
  location: location
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }
  properties: {
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }

  resource blobs 'blobServices' = {
    name: 'default'
    resource package 'containers' = { name: 'package' }
    resource evidence 'containers' = { name: 'sqlwriter' }
  }

  resource policy 'managementPolicies' = {
    name: 'default'
    properties: { policy: json(replace(loadTextContent('../storage/lifecycle.json'), '/web/', '/${sysName}/')) }
  }
}

resource bus 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: 'sb-sqlwriter-${suffix}'
  location: location
  sku: { name: 'Standard', tier: 'Standard' } // Basic has no duplicate detection
  properties: { disableLocalAuth: true, minimumTlsVersion: '1.2' }

  resource queue 'queues' = [for name in [runsQueue, batchesQueue]: {
    name: name
    properties: {
      lockDuration: 'PT1M'
      maxDeliveryCount: 10
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      defaultMessageTimeToLive: 'P14D'
      deadLetteringOnMessageExpiration: true
    }
  }]
}

resource logs 'Microsoft.OperationalInsights/workspaces@2025-02-01' = {
  name: 'log-sqlwriter-${suffix}'
  location: location
  properties: { sku: { name: 'PerGB2018' }, retentionInDays: 30, features: { disableLocalAuth: true } }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: 'appi-sqlwriter-${suffix}'
  location: location
  kind: 'web'
  properties: { Application_Type: 'web', WorkspaceResourceId: logs.id, DisableLocalAuth: true }
}

resource mayBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (assignRoles) {
  name: guid(storage.id, identity.id, blobDataOwner)
  scope: storage
  properties: { principalId: principal, principalType: 'ServicePrincipal', roleDefinitionId: blobDataOwner }
}

resource mayBus 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (assignRoles) {
  name: guid(bus.id, identity.id, serviceBusDataOwner)
  scope: bus
  properties: { principalId: principal, principalType: 'ServicePrincipal', roleDefinitionId: serviceBusDataOwner }
}

resource mayInsights 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (assignRoles) {
  name: guid(insights.id, identity.id, metricsPublisher)
  scope: insights
  properties: { principalId: principal, principalType: 'ServicePrincipal', roleDefinitionId: metricsPublisher }
}

// Serverless suits Cosmos DB: a request is paid, and time is not. For a steady load make an account with throughput.
resource cosmosAccount 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' = if (newCosmos) {
  name: account
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    locations: [{ locationName: location, failoverPriority: 0 }]
    capabilities: [{ name: 'EnableServerless' }]
    disableLocalAuth: true
    minimalTlsVersion: 'Tls12'
  }
}

module cosmos 'cosmos.bicep' = if (newCosmos) {
  name: 'sqlwriter-cosmos-${suffix}'
  params: {
    account: cosmosAccount.name
    database: cosmosDatabase
    leaseContainer: leaseContainer
    principals: concat([principal], dataContributors)
    createDatabase: true
    container: cosmosContainer
    partitionKeyPaths: partitionKeyPaths
  }
}

resource sqlOwn 'Microsoft.Sql/servers@2021-11-01' = if (newSql) {
  name: server
  location: location
  properties: {
    minimalTlsVersion: '1.2'
    administrators: empty(sqlAdmin) ? null : {
      administratorType: 'ActiveDirectory'
      azureADOnlyAuthentication: true
      login: sqlAdmin.name
      sid: sqlAdmin.objectId
      principalType: sqlAdmin.type
      tenantId: tenant().tenantId
    }
  }

  // Not serverless: the timer asks every five minutes, so it would never pause and would be paid awake all day.
  resource database 'databases' = { name: sqlDatabase, location: location, sku: sqlSku }

  // Addresses of Azure, of other tenants too, because the app has none of its own. Entra says who signs in.
  resource azure 'firewallRules' = {
    name: 'AllowAllWindowsAzureIps'
    properties: { startIpAddress: '0.0.0.0', endIpAddress: '0.0.0.0' }
  }
}

resource storageLock 'Microsoft.Authorization/locks@2020-05-01' = if (locks) {
  name: 'sqlwriter-keep'
  scope: storage
  properties: { level: 'CanNotDelete', notes: 'Evidence and dead letters' }
}

resource cosmosLock 'Microsoft.Authorization/locks@2020-05-01' = if (locks && newCosmos) {
  name: 'sqlwriter-keep'
  scope: cosmosAccount
  properties: { level: 'CanNotDelete', notes: 'Documents, leases, control document' }
}

resource sqlLock 'Microsoft.Authorization/locks@2020-05-01' = if (locks && newSql) {
  name: 'sqlwriter-keep'
  scope: sqlOwn::database
  properties: { level: 'CanNotDelete', notes: 'Rows, ledger, audit log' }
}

resource plan 'Microsoft.Web/serverfarms@2024-11-01' = {
  name: 'plan-${appName}'
  location: location
  kind: 'functionapp'
  sku: { name: 'FC1', tier: 'FlexConsumption' }
  properties: { reserved: true }
}

resource app 'Microsoft.Web/sites@2024-11-01' = {
  name: appName
  location: location
  kind: 'functionapp,linux'
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${identity.id}': {} } }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    functionAppConfig: {
      runtime: { name: 'custom', version: '1.0' }
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${storage.properties.primaryEndpoints.blob}package'
          authentication: { type: 'UserAssignedIdentity', userAssignedIdentityResourceId: identity.id }
        }
      }
      scaleAndConcurrency: {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstances
        // The change feed is not left to be woken: with an identity the plan may not see that changes wait.
        alwaysReady: [{ name: 'function:CommitResults', instanceCount: 1 }]
      }
    }
  }
  dependsOn: [mayBlobs, storage::blobs::package]

  // No password for deployments: func signs in with Entra.
  resource passwords 'basicPublishingCredentialsPolicies' = [for name in ['scm', 'ftp']: {
    name: name
    properties: { allow: false }
  }]

  resource appSettings 'config' = {
    name: 'appsettings'
    properties: union(settings, {
      SYS_NAME: sysName
      LEASE_PREFIX: leasePrefix
      MODE: mode
      AzureWebJobsStorage__accountName: storage.name
      AzureWebJobsStorage__credential: 'managedidentity'
      AzureWebJobsStorage__clientId: client
      COSMOS_CONNECTION__accountEndpoint: endpoint
      COSMOS_CONNECTION__credential: 'managedidentity'
      COSMOS_CONNECTION__clientId: client
      COSMOS_DATABASE: cosmosDatabase
      COSMOS_CONTAINER: cosmosContainer
      LEASE_CONTAINER: leaseContainer
      SQL_CONNECTION: '${address}&fedauth=ActiveDirectoryManagedIdentity&user+id=${client}'
      SQL_SCHEMA: sqlSchema
      SQL_MAX_OPEN: string(sqlMaxOpen)
      SERVICEBUS_CONNECTION__fullyQualifiedNamespace: '${bus.name}.servicebus.windows.net'
      SERVICEBUS_CONNECTION__credential: 'managedidentity'
      SERVICEBUS_CONNECTION__clientId: client
      RUNS_QUEUE: runsQueue
      BATCHES_QUEUE: batchesQueue
      APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
      APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${client};Authorization=AAD'
    }, empty(mapping) ? {} : { MAPPING: mapping })
  }

  // Requests without a sign-in pass: Health is anonymous, and Ops has its key.
  resource signIn 'config' = if (!empty(signInClientId)) {
    name: 'authsettingsV2'
    properties: {
      platform: { enabled: true }
      globalValidation: { requireAuthentication: false, unauthenticatedClientAction: 'AllowAnonymous' }
      identityProviders: {
        azureActiveDirectory: {
          enabled: true
          registration: { clientId: signInClientId, openIdIssuer: '${login}${tenant().tenantId}/v2.0' }
          validation: { allowedAudiences: [signInClientId, 'api://${signInClientId}'] }
        }
      }
    }
    dependsOn: [appSettings]
  }
}

resource tell 'Microsoft.Insights/actionGroups@2023-01-01' = if (!empty(alertEmail)) {
  name: 'ag-sqlwriter-${sysName}'
  location: 'global'
  properties: { groupShortName: 'sqlwriter', enabled: true, emailReceivers: [{ name: 'us', emailAddress: alertEmail }] }
}

module alerts '../alerts/alerts.bicep' = if (!empty(alertEmail)) {
  name: 'sqlwriter-alerts-${suffix}'
  params: { insights: insights.id, wake: tell.id, tell: tell.id, prefix: 'sqlwriter-${sysName}', location: location }
}

output app string = app.name
output url string = 'https://${app.properties.defaultHostName}'
output identityName string = identity.name
output clientId string = client
output principalId string = principal
output sqlServer string = host
output sqlDatabase string = sqlDatabase
output cosmosDatabase string = cosmosDatabase
output missingRoles array = assignRoles ? [] : [
  { role: blobDataOwner, scope: storage.id, principal: principal }
  { role: serviceBusDataOwner, scope: bus.id, principal: principal }
  { role: metricsPublisher, scope: insights.id, principal: principal }
]
